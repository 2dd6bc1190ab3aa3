"""`vigil heartbeat`: a sign of life.

Users call it in loops: inside a session it writes one file into the spool, as a hook does, and asks no daemon."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from vigil.errors import UsageError, VigilError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the session names with this beginning."""
    from vigil.cli.options import complete_name

    return complete_name(ctx, param, incomplete)


@click.command()
@click.argument("name", required=False, shell_complete=complete)
def heartbeat(name: str | None) -> None:
    """Say that NAME is alive and well; inside a session, without NAME, that this one is. Prints nothing.

    Example: while make check; do vigil heartbeat; done"""
    spool, launch = os.environ.get("VIGIL_SPOOL"), os.environ.get("VIGIL_LAUNCH")
    ours = name == os.environ.get("VIGIL_SESSION") and "VIGIL_HOME" not in os.environ  # which may name another instance
    if spool and launch and (name is None or ours):
        _write(spool, launch)
    elif name is None:
        raise UsageError("this runs in no session: say whose heartbeat it is, vigil heartbeat NAME; vigil ls shows the names")
    else:
        from vigil.client import connect

        connect().heartbeat(name)


def _write(spool: str, launch: str) -> None:
    """Put a heartbeat into the spool; the daemon sees all of it or nothing."""
    # Without `json`, whose import takes longer than all the rest: neither name holds a character to quote (DESIGN 4).
    session, token = os.environ.get("VIGIL_SESSION", ""), os.environ.get("VIGIL_TOKEN", "")
    event = f'{{"session":"{session}","launch":"{launch}","token":"{token}","payload":{{"event":"heartbeat"}}}}\n'
    name = f"{time.time_ns()}-{os.getpid()}.json"
    unfinished = os.path.join(spool, "tmp", name)
    try:
        with open(unfinished, "xb") as file:
            file.write(os.fsencode(event))
        os.rename(unfinished, os.path.join(spool, "new", name))
    except OSError as error:
        _remove(unfinished)
        raise VigilError(
            f"no heartbeat was written: {error.strerror} ({error.filename or unfinished}); vigil doctor says what is wrong"
        ) from None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it was never there
