"""`vigil deaths` and `vigil death`: what died, and why."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from vigil.cli.death_page import page, status_of
from vigil.cli.kept import say_kept
from vigil.cli.options import complete_name, output_option, show
from vigil.cli.table import Column, print_table
from vigil.client import connect

MOST = 1000  # the daemon returns no more at once

COLUMNS = (
    Column("ID"),
    Column("AT (UTC)"),
    Column("SESSION", shrink=True),
    Column("CAUSE"),
    Column("STATUS"),
    Column("WHY", shrink=True),
)


@click.command()
@click.argument("name", required=False, shell_complete=complete_name)
@output_option
def deaths(name: str | None, output: str) -> None:
    """List death records, newest first, of NAME alone if it is given.

    Example: vigil deaths fix-tests"""
    client = connect()
    found = client.deaths(name)
    if output == "json":
        print(json.dumps(found))
    else:
        print_table(COLUMNS, [row_of(death) for death in found], wide=output == "wide")
    if len(found) >= MOST:
        click.echo(f"vigil: the newest {MOST:,} are shown", err=True)
    else:
        say_kept("deaths", client.removed_until)


def row_of(death: dict[str, Any]) -> list[str]:
    why = death["evidence"][0]["text"] if death["evidence"] else ""
    return [death["id"], _moment(death["at"]), death["session"], death["cause"], status_of(death), why]


def _moment(at: str) -> str:
    """Return a moment for a narrow column: its time, with the day unless that is today."""
    day, _, time_ = at.partition("T")
    return time_[:8] if day == f"{datetime.now(UTC):%Y-%m-%d}" else f"{day[5:]} {time_[:5]}"


@click.command()
@click.argument("which", metavar="ID|NAME", shell_complete=complete_name)
@output_option
def death(which: str, output: str) -> None:
    """Show one death, or the last one of NAME: what, when, why, how sure, on what evidence, and what Vigil did next.

    Example: vigil death fix-tests"""
    found = connect().death(which)
    show(found, output, page(found))
