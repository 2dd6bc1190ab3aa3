"""`vigil events`: the durable event log, as it is or as it grows."""

from __future__ import annotations

import json
from typing import Any

import click

from vigil.cli.kept import say_kept
from vigil.cli.options import complete_name, output_option
from vigil.cli.sentences import sentence_of
from vigil.cli.since import day, local, moment
from vigil.client import connect
from vigil.text import one_line

Json = dict[str, Any]

MOST = 1000  # the daemon returns no more at once


@click.command()
@click.argument("name", required=False, shell_complete=complete_name)
@click.option("-f", "--follow", is_flag=True, help="Go on with new events as they happen.")
@click.option("--since", default=None, metavar="T", help="Only since then: 8h (ago), 22:00, yesterday, a date, RFC 3339.")
@output_option
def events(name: str | None, follow: bool, since: str | None, output: str) -> None:
    """Show the event log, of NAME alone if it is given: in sentences, in local time; -o wide shows the fields.

    Example: vigil events fix-tests --since 22:00"""
    client = connect()
    since_at = None if since is None else moment(since)
    found = client.events(name, since_at)
    if since is not None or len(found) < MOST:
        say_kept("events", client.removed_until, since_at)
    if output == "json" and not follow:
        print(json.dumps(found))
        return
    page = EventPage(output)
    for event in found:
        page.show(event)
    if len(found) >= MOST and not follow:
        click.echo(f"vigil: the newest {MOST:,} are shown", err=True)
    if follow:
        for event in client.follow_events(name, found[-1]["seq"] if found else None):
            page.show(event)


class EventPage:
    """Events as lines: in sentences and local time, a heading for each day; or with their fields."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._day = ""

    def show(self, event: Json) -> None:
        """Print one event."""
        if self._output == "json":
            print(json.dumps(event), flush=True)
            return
        if self._output == "wide":
            data = " ".join(f"{key}={value}" for key, value in event["data"].items() if value not in (None, ""))
            line = f"{event['seq']:>6} {event['at']} {event['kind']:<22} {event['session'] or '-'} {data}"
            print(one_line(line), flush=True)
            return
        at = local(event["at"])
        if (today := day(at.date())) != self._day:
            self._day = today
            print(today)
        who = f"{event['session']}: " if event["session"] else ""
        print(one_line(f"{at:%H:%M:%S}  {who}{sentence_of(event['kind'], event['data'])}"), flush=True)
