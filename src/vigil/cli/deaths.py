"""`vigil deaths` and `vigil death`: what died, and why."""

from __future__ import annotations

import json
from typing import Any

import click

from vigil.cli.death_page import page, status_of
from vigil.cli.options import complete_name, output_option
from vigil.cli.table import Column, print_table
from vigil.client import connect

COLUMNS = (
    Column("ID"),
    Column("AT"),
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

    Example: vigil deaths fix-tests
    """
    found = connect().deaths(name)
    if output == "json":
        print(json.dumps(found))
    else:
        print_table(COLUMNS, [row_of(death) for death in found], wide=output == "wide")


def row_of(death: dict[str, Any]) -> list[str]:
    """Return one death as a table's row."""
    why = death["evidence"][0]["text"] if death["evidence"] else ""
    return [death["id"], death["at"], death["session"], death["cause"], status_of(death), why]


@click.command()
@click.argument("which", metavar="ID|NAME", shell_complete=complete_name)
@output_option
def death(which: str, output: str) -> None:
    """Show one death, or the last one of NAME: what, when, why, how sure, on what evidence, and what Vigil did next.

    Example: vigil death fix-tests
    """
    found = connect().death(which)
    if output == "json":
        print(json.dumps(found))
        return
    print("\n".join(page(found)))
