"""`vigil rm`: ends a session, purges its identity, and lists what went."""

from __future__ import annotations

import json

import click

from vigil.cli.options import name_argument, output_option, reason_option
from vigil.client import connect


@click.command()
@name_argument
@reason_option
@output_option
def rm(name: str, reason: str | None, output: str) -> None:
    """End NAME and purge all that is keyed by it; its working folder is never touched.

    Example: vigil rm fix-tests
    """
    gone = connect().rm(name, reason)
    if output == "json":
        print(json.dumps(gone))
        return
    print(f"{gone['name']} is removed")
    for what in gone["purged"]:
        print(f"  purged: {what}")
    for what in gone["kept"]:
        print(f"  kept:   {what}")
