"""`vigil stop`, `start`, `restart`, `reset`: an operator's word on one session."""

from __future__ import annotations

import json

import click

from vigil.cli.options import name_argument, output_option, reason_option
from vigil.client import connect


def _ask(verb: str, name: str, output: str, reason: str | None = None) -> None:
    session = connect().ask(verb, name, reason)
    if output == "json":
        print(json.dumps(session))
    else:
        print(f"{session['name']} is {session['state']}: {session['why']}")


@click.command()
@name_argument
@reason_option
@output_option
def stop(name: str, reason: str | None, output: str) -> None:
    """End NAME, verified; it stays stopped until `vigil start`. Never charged as a crash.

    Example: vigil stop fix-tests
    """
    _ask("stop", name, output, reason)


@click.command()
@name_argument
@output_option
def start(name: str, output: str) -> None:
    """Launch NAME again, whatever ended it; its crash count starts anew. It goes on with its conversation if it can.

    Example: vigil start fix-tests
    """
    _ask("start", name, output)


@click.command()
@name_argument
@reason_option
@output_option
def restart(name: str, reason: str | None, output: str) -> None:
    """End NAME, verified, and launch it again, in its conversation if it can. Never charged as a crash.

    Example: vigil restart fix-tests
    """
    _ask("restart", name, output, reason)


@click.command()
@name_argument
@output_option
def reset(name: str, output: str) -> None:
    """Forget NAME's crashes and quarantined conversations, and end its wait: it is launched now.

    Example: vigil reset fix-tests
    """
    _ask("reset", name, output)
