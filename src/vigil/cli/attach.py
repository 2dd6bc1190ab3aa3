"""`vigil attach`: becomes the tmux client of a session."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import click

from vigil.cli.options import name_argument
from vigil.client import connect
from vigil.errors import Unreachable, VigilError
from vigil.home import Home, parts_of


@click.command()
@name_argument
def attach(name: str) -> None:
    """Show NAME's terminal; Ctrl-b d leaves it running (from inside a tmux of yours: Ctrl-b Ctrl-b d).

    Example: vigil attach fix-tests
    """
    client = connect()
    become_client(client_argv(client.home, client.terminal(name)))


def client_argv(home: Home, facts: dict[str, Any]) -> list[str]:
    """Return the tmux client for a terminal, made here from facts; Unreachable unless its own server listens."""
    from vigil.kernel.trust import Untrusted, name_of, open_server

    try:
        launch, pane, socket = str(facts["launch"]), str(facts["pane"]), facts["socket"]
        server = int(facts["server"]["pid"]), int(facts["server"]["start_ticks"])
    except (KeyError, TypeError, ValueError):
        raise Unreachable("the daemon is of another version: vigil daemon stop leaves all running, then ask again") from None
    if "/" in launch or parts_of(launch) is None or not re.fullmatch(r"%[0-9]+", pane):
        raise Unreachable("the daemon named no launch and no pane")
    path = home.server_path(launch) if socket is None else str(socket)
    try:
        fd, _ = open_server(path, server)
    except Untrusted as error:
        raise Unreachable(f"{error}. No tmux client was started") from None
    except (OSError, ValueError) as error:
        raise Unreachable(f"its tmux server cannot be reached: {error}; vigil why says more") from None
    os.set_inheritable(fd, True)
    return ["tmux", "-u", "-S", name_of(fd), "attach-session", "-t", pane]


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
