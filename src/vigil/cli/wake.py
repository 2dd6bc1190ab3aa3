"""`vigil hibernate` and `vigil wake`: puts a session to sleep, and brings it back."""

from __future__ import annotations

import json

import click

from vigil.cli.options import name_argument, output_option, reason_option
from vigil.client import connect
from vigil.errors import Refused, UsageError


@click.command()
@name_argument
@reason_option
@output_option
def hibernate(name: str, reason: str | None, output: str) -> None:
    """Put NAME to sleep: it is ended, verified, and never charged; `vigil wake` brings it back where it was.

    Example: vigil hibernate backend/coder/0
    """
    session = connect().ask("hibernate", name, reason)
    if output == "json":
        print(json.dumps(session))
    else:
        print(f"{session['name']} is {session['state']}: {session['why']}")


@click.command()
@name_argument
@click.option("--fresh", is_flag=True, help="Begin a new conversation.")
@click.option("--resume", is_flag=True, help="Go on with its conversation, or fail.")
@output_option
def wake(name: str, fresh: bool, resume: bool, output: str) -> None:
    """Bring NAME back; without an option, how it ended says whether it goes on with its conversation.

    What is stopped, in a backoff, or waits for a limit to end is not woken: that ends with 4, and says until when.

    Example: vigil wake backend/coder/0
    """
    if fresh and resume:
        raise UsageError("--fresh and --resume are two ways to wake: give one of them, or none")
    found = connect().wake(name, "fresh" if fresh else "resume" if resume else None)
    if output == "json":
        print(json.dumps(found))
    if found["mode"] == "refused":
        cause = "" if found["cause"] in found["why"] else f" ({found['cause']})"
        until = f" until {found['until']}" if found["until"] else ""
        raise Refused(f"{name} is not woken{until}{cause}: {found['why']}")
    if output != "json":
        print(f"{found['mode']}: {found['cause']}{' (' + found['why'] + ')' if found['why'] else ''}")
