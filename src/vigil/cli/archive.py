"""`vigil archive`: ends a session and keeps its record."""

from __future__ import annotations

import json

import click

from vigil.cli.options import name_argument, output_option, reason_option
from vigil.client import connect


@click.command()
@name_argument
@reason_option
@output_option
def archive(name: str, reason: str | None, output: str) -> None:
    """End NAME, verified, and put it away: `vigil ls --all` still shows it, `vigil start` brings it back.

    It is not woken by messages, and its name stays its own until `vigil rm`.

    Example: vigil archive fix-tests
    """
    session = connect().ask("archive", name, reason)
    if output == "json":
        print(json.dumps(session))
    else:
        print(f"{session['name']} is {session['why']}; vigil ls --all shows it")
