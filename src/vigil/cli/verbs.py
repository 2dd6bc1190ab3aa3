"""An operator's word on one session: `vigil stop`, `start`, `restart`, `reset`, `hibernate`, `wake`, `archive`, `rm`."""

from __future__ import annotations

from typing import Any

import click

from vigil.cli.options import name_argument, output_option, reason_option, show
from vigil.client import connect
from vigil.errors import Refused, UsageError

SAYS = "{name} is {state}: {why}"


def _verb(verb: str, does: str, example: str = "fix-tests", says: str = SAYS, reason: bool = True) -> click.Command:
    """Return the command that asks the daemon for a verb, and says what became of the session."""

    @output_option
    def ask(name: str, output: str, reason: str | None = None) -> None:
        session = connect().ask(verb, name, reason)
        show(session, output, [says.format(**session)])

    options = name_argument(reason_option(ask) if reason else ask)
    return click.command(verb, help=f"{does}\n\nExample: vigil {verb} {example}")(options)


stop = _verb("stop", "End NAME, verified; it stays stopped until `vigil start`. Never charged as a crash.")
start = _verb(
    "start",
    "Launch NAME again, whatever ended it; its crash count starts anew. It goes on with its conversation if it can.",
    reason=False,
)
restart = _verb("restart", "End NAME, verified, and launch it again, in its conversation if it can. Never charged as a crash.")
reset = _verb(
    "reset", "Forget NAME's crashes and quarantined conversations, and end its wait: it is launched now.", reason=False
)
hibernate = _verb(
    "hibernate",
    "Put NAME to sleep: it is ended, verified, and never charged; `vigil wake` brings it back where it was.",
    example="backend/coder/0",
)
archive = _verb(
    "archive",
    "End NAME, verified, and put it away: `vigil ls --all` still shows it, `vigil start` brings it back.\n\n"
    "It is not woken by messages, and its name stays its own until `vigil rm`.",
    says="{name} is {why}; vigil ls --all shows it",
)


@click.command()
@name_argument
@click.option("--fresh", is_flag=True, help="Begin a new conversation.")
@click.option("--resume", is_flag=True, help="Go on with its conversation, or fail.")
@output_option
def wake(name: str, fresh: bool, resume: bool, output: str) -> None:
    """Bring NAME back; without an option, how it ended says whether it goes on with its conversation.

    What is stopped, in a backoff, or waits for a limit to end is not woken: that ends with 4, and says until when.

    Example: vigil wake backend/coder/0"""
    if fresh and resume:
        raise UsageError("--fresh and --resume are two ways to wake: give one of them, or none")
    found = connect().wake(name, "fresh" if fresh else "resume" if resume else None)
    refused = found["mode"] == "refused"
    if output == "json" or not refused:
        show(found, output, [_woken(found)])
    if refused:
        cause = "" if found["cause"] in found["why"] else f" ({found['cause']})"
        until = f" until {found['until']}" if found["until"] else ""
        raise Refused(f"{name} is not woken{until}{cause}: {found['why']}")


WOKEN = {
    "fresh": "{name} runs, in a new conversation",
    "resume": "{name} runs, and goes on with its conversation",
    "nothing": "{name} is awake already",
}


def _woken(found: dict[str, Any]) -> str:
    """Return what became of a session that was to wake, and why so."""
    words = WOKEN.get(found["mode"], "{name}: {mode}").format(**found)
    return f"{words} ({found['cause']}{': ' + found['why'] if found['why'] else ''})"


@click.command()
@name_argument
@reason_option
@output_option
def rm(name: str, reason: str | None, output: str) -> None:
    """End NAME and purge all that is keyed by it; its working folder is never touched.

    Example: vigil rm fix-tests"""
    gone = connect().rm(name, reason)
    purged, kept = (f"  purged: {what}" for what in gone["purged"]), (f"  kept:   {what}" for what in gone["kept"])
    show(gone, output, [f"{gone['name']} is removed", *purged, *kept])
