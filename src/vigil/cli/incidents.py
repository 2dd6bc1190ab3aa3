"""`vigil incidents` and `vigil ack`: lists what needs a human, shows one incident, or marks one as known."""

from __future__ import annotations

import json
from typing import Any

import click
from click.shell_completion import CompletionItem

from vigil.cli.kept import say_kept
from vigil.cli.options import output_option, show
from vigil.cli.table import Column, print_table
from vigil.client import connect

MOST = 1000  # the daemon returns no more at once
SEVERITY_COLOURS = {"urgent": "red", "action": "yellow", "warning": "cyan"}
COLUMNS = (
    Column("ID", shrink=True),
    Column("SEVERITY", colour=SEVERITY_COLOURS.get),
    Column("KIND"),
    Column("SESSION", shrink=True),
    Column("OPENED"),
    Column("COUNT"),
    Column("TOLD"),
    Column("WHY", shrink=True),
)
WIDE = (*COLUMNS[:-1], Column("ACKED"), Column("RESOLVED"), COLUMNS[-1])


def complete_incident(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids of open incidents with this beginning; none without a daemon, which it does not start."""
    from vigil.errors import VigilError

    try:
        found = connect(start=False).incidents()
    except VigilError:
        return []
    return [CompletionItem(one["id"], help=one["kind"]) for one in found if one["id"].startswith(incomplete)]


@click.command()
@click.argument("incident_id", metavar="[ID]", required=False, shell_complete=complete_incident)
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that are over.")
@output_option
def incidents(incident_id: str | None, everything: bool, output: str) -> None:
    """List what needs a human, newest first; with ID tell one of them from its beginning: evidence, notices, reactions.

    Example: vigil incidents --all"""
    if incident_id is not None:
        _tell(incident_id, output)
        return
    client = connect()
    found = client.incidents(everything)
    wide = output == "wide" or everything
    if output == "json":
        print(json.dumps(found))
    elif found:
        print_table(WIDE if wide else COLUMNS, [row_of(incident, wide) for incident in found], output == "wide")
    else:
        print("Nothing needs a human." if not everything else "There has been no incident.")
    if len(found) < MOST:
        say_kept("incidents", client.removed_until)


def _tell(incident_id: str, output: str) -> None:
    from vigil.cli.incident_page import page

    found = connect().incident(incident_id)
    show(found, output, page(found))


def row_of(incident: dict[str, Any], wide: bool) -> list[str]:
    told = [n["route"] if n["state"] == "sent" else f"{n['route']} ({n['state']})" for n in incident["notices"]]
    row = [
        incident["id"],
        incident["severity"],
        incident["kind"],
        incident["session"] or "(host)",
        incident["opened_at"],
        str(incident["count"]),
        ", ".join(dict.fromkeys(told)) or "-",
    ]
    if wide:
        row += [incident["acked_at"] or "-", incident["resolved_at"] or "-"]
    return [*row, incident["resolution"] or _why(incident, wide)]


def _why(incident: dict[str, Any], wide: bool) -> str:
    """Return why, which death tells more, and whether it is acknowledged."""
    deaths = incident["deaths"]
    words = f"{incident['why']}; vigil death {deaths[-1]} tells the last one" if deaths else str(incident["why"])
    return f"(acknowledged) {words}" if incident["acked_at"] and not wide else words


@click.command()
@click.argument("incident_id", metavar="ID", shell_complete=complete_incident)
@output_option
def ack(incident_id: str, output: str) -> None:
    """Say that you know of incident ID: nobody is told of it again until it is over. Only its end resolves it.

    Example: vigil ack i-sabcdefgh-stuck-5f3a9c0e12345"""
    found = connect().ack(incident_id)
    words = f"{found['kind']} of {found['session'] or 'the host'}; it resolves by itself"
    show(found, output, [f"{found['id']} is acknowledged: {words}"])
