"""`vigil events`: the durable event log, as it is or as it grows."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any

import click

from vigil.cli.kept import say_kept
from vigil.cli.options import complete_name, output_option, seconds_of
from vigil.client import connect
from vigil.text import one_line

MOST = 1000  # the daemon returns no more at once


@click.command()
@click.argument("name", required=False, shell_complete=complete_name)
@click.option("-f", "--follow", is_flag=True, help="Go on with new events as they happen.")
@click.option("--since", default=None, metavar="T", help="Only since a time (RFC 3339), or since so long ago (10m, 7d).")
@output_option
def events(name: str | None, follow: bool, since: str | None, output: str) -> None:
    """Show the event log, of NAME alone if it is given.

    Example: vigil events fix-tests --since 10m"""
    client = connect()
    since_at = None if since is None else moment(since)
    found = client.events(name, since_at)
    if since is not None or len(found) < MOST:
        say_kept("events", client.removed_until, since_at)
    if output == "json" and not follow:
        print(json.dumps(found))
        return
    for event in found:
        show(event, output)
    if len(found) >= MOST and not follow:
        click.echo(f"vigil: the newest {MOST:,} are shown", err=True)
    if follow:
        for event in client.follow_events(name, found[-1]["seq"] if found else None):
            show(event, output)


def moment(text: str) -> float:
    """Return the moment a user means."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        ago_s = seconds_of(text)
    if ago_s < 0:
        raise click.BadParameter(f"{text!r} is still to come; say how long ago, or since when")
    return time.time() - ago_s


def show(event: dict[str, Any], output: str) -> None:
    if output == "json":
        print(json.dumps(event), flush=True)
        return
    data = " ".join(f"{key}={value}" for key, value in event["data"].items() if value not in (None, ""))
    print(one_line(f"{event['seq']:>6} {event['at']} {event['kind']:<22} {event['session'] or '-'} {data}"), flush=True)
