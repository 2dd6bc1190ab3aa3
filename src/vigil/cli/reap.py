"""`vigil reap`: a sweep of the reaper now, with each session's class and why."""

from __future__ import annotations

import json
from typing import Any

import click

from vigil.cli.options import output_option
from vigil.cli.table import Column, print_table
from vigil.client import connect

COLOURS = {"keep": "green", "park": "yellow", "kill": "red"}
COLUMNS = (
    Column("NAME", shrink=True),
    Column("CLASS"),
    Column("ACTION", colour=COLOURS.get),
    Column("OUTCOME"),
    Column("EVIDENCE", shrink=True),
)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@output_option
def reap(dry_run: bool, output: str) -> None:
    """Look at every session now: put to sleep what is idle, end what is orphaned or archived; say why of each.

    Example: vigil reap --dry-run"""
    found = connect().reap(dry_run)
    if output == "json":
        print(json.dumps(found))
    elif found:
        print_table(COLUMNS, [_row(one) for one in found], output == "wide")
    else:
        print("There is nothing to look at.")


def _row(one: dict[str, Any]) -> list[str]:
    told = [one["why"]] if one["outcome"] and one["why"] not in one["evidence"] else []
    told += [fact for fact in one["evidence"] if not told or fact not in told[0]]
    return [one["name"], one["class"], one["action"], one["outcome"] or "-", "; ".join(told)]
