"""`vigil send`: types a prompt into a session's terminal, and says what became of it."""

from __future__ import annotations

import json
import sys

import click

from vigil.cli.options import name_argument, output_option
from vigil.client import connect
from vigil.errors import Refused, UsageError, VigilError

MOST_BYTES = 4 << 20


@click.command()
@name_argument
@click.argument("text")
@click.option(
    "--wait", "wait_s", type=float, help="Seconds to wait for a composer that can take it (20), or for one that sleeps (0)."
)
@output_option
def send(name: str, text: str, wait_s: float | None, output: str) -> None:
    """Type TEXT as a prompt into NAME's terminal; TEXT of - is read from standard input.

    Prints submitted, unsubmitted or unknown; a refusal ends with 4. Nothing is typed twice, nor into a dialog or a shell.

    One that was put to sleep is woken: that prints queued, unless --wait says how long to wait for what becomes of it.

    Example: vigil send backend "run the tests again"
    """
    if text == "-":
        text = _read_input()
    found = connect().send(name, text, wait_s)
    if output == "json":
        print(json.dumps(found))
    if found["outcome"] == "refused":
        raise Refused(f"{name} was not sent anything: {found['why']}")
    if output != "json":
        print(f"{found['outcome']}: {found['why']}")
    if found["outcome"] == "unsubmitted":
        raise VigilError(f"{name} has it in its composer, and did not take it: vigil attach {name}")


def _read_input() -> str:
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UsageError(f"standard input holds more than {MOST_BYTES >> 20} MiB")
    return data.decode("utf-8", "replace")
