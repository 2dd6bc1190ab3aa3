"""`vigil diag`: what the processes of a session do right now."""

from __future__ import annotations

import json

import click

from vigil.cli.diag_page import page
from vigil.cli.options import name_argument, output_option
from vigil.cli.table import terminal_width, use_colour
from vigil.client import connect


@click.command()
@name_argument
@click.option(
    "--over",
    type=click.FloatRange(0.1, 10.0),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="How far apart the two looks are that rates are taken from.",
)
@output_option
def diag(name: str, over: float, output: str) -> None:
    """Look at NAME's processes now: tree, CPU, memory, sockets of their own, where they wait.

    Example: vigil diag fix-tests
    """
    found = connect().diag(name, over)
    if output == "json":
        print(json.dumps(found))
        return
    for line in page(found, terminal_width(output == "wide"), use_colour(), wide=output == "wide"):
        print(line)
