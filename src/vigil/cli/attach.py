"""`vigil attach`: becomes the tmux client of a session."""

from __future__ import annotations

import os
import sys

import click

from vigil.cli.options import name_argument
from vigil.client import connect
from vigil.errors import VigilError


@click.command()
@name_argument
def attach(name: str) -> None:
    """Show NAME's terminal; Ctrl-b d leaves it running.

    Example: vigil attach fix-tests
    """
    argv = connect().attach_argv(name)
    become_client(argv)


def become_client(argv: list[str]) -> None:
    """Exec the client; it needs our terminal."""
    check_terminal()
    # tmux refuses to run inside tmux; this client goes to another server, so nesting is what the user wants.
    env = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        raise VigilError(f"{argv[0]} cannot be run from here ({error.strerror}): see that it is in your PATH") from None


def check_terminal() -> None:
    """Refuse to attach without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise VigilError("attach needs a terminal; vigil logs shows what the agent printed")
