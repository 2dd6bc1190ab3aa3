"""`vigil incidents`: what needs a human."""

from __future__ import annotations

import json
from typing import Any

import click

from vigil.cli.options import output_option
from vigil.cli.table import Column, print_table
from vigil.client import connect

SEVERITY_COLOURS = {"urgent": "red", "action": "yellow", "warning": "cyan"}
COLUMNS = (
    Column("SEVERITY", colour=SEVERITY_COLOURS.get),
    Column("KIND"),
    Column("SESSION", shrink=True),
    Column("OPENED"),
    Column("COUNT"),
    Column("TOLD"),
    Column("WHY", shrink=True),
)
WIDE = (Column("ID"), *COLUMNS[:-1], Column("RESOLVED"), COLUMNS[-1])


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that are over.")
@output_option
def incidents(everything: bool, output: str) -> None:
    """List what needs a human, newest first.

    Example: vigil incidents --all
    """
    found = connect().incidents(everything)
    wide = output == "wide" or everything
    if output == "json":
        print(json.dumps(found))
    elif found:
        print_table(WIDE if wide else COLUMNS, [row_of(incident, wide) for incident in found], output == "wide")
    else:
        print("Nothing needs a human." if not everything else "There has been no incident.")


def row_of(incident: dict[str, Any], wide: bool) -> list[str]:
    """Return one incident as a table's row."""
    told = [n["route"] if n["state"] == "sent" else f"{n['route']} ({n['state']})" for n in incident["notices"]]
    row = [
        incident["severity"],
        incident["kind"],
        incident["session"] or "(host)",
        incident["opened_at"],
        str(incident["count"]),
        ", ".join(dict.fromkeys(told)) or "-",
    ]
    if wide:
        row = [incident["id"], *row, incident["resolved_at"] or "-"]
    return [*row, incident["resolution"] or _why(incident)]


def _why(incident: dict[str, Any]) -> str:
    """Return why, and which death tells more."""
    deaths = incident["deaths"]
    return f"{incident['why']}; vigil death {deaths[-1]} tells the last one" if deaths else str(incident["why"])
