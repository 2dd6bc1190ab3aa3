"""`vigil adopt` and `vigil release`: watches a tmux session that was started elsewhere, and gives it back."""

from __future__ import annotations

import json
import os
import stat
from typing import Any

import click

from vigil.cli.options import name_argument, output_option, reason_option
from vigil.cli.table import Column, print_table
from vigil.client import connect
from vigil.errors import Refused, UsageError

COLUMNS = (
    Column("NAME", shrink=True),
    Column("AGENT"),
    Column("PID"),
    Column("ATTACHED"),
    Column("ADOPTED AS"),
    Column("COMMAND", shrink=True),
    Column("SOCKET", shrink=True),
)


@click.command()
@click.argument("target", required=False)
@click.option("--socket", metavar="S", help="The tmux server: a socket's path, or its name as in tmux -L.")
@click.option("--name", metavar="N", help="What to call the session here, if not as it is called there.")
@click.option("--list", "list_", is_flag=True, help="Show the sessions there are, with the agent found in each.")
@output_option
def adopt(target: str | None, socket: str | None, name: str | None, list_: bool, output: str) -> None:
    """Watch the tmux session TARGET, by its exact name, as if Vigil had started it; it goes on as it is.

    It is never restarted, and never put to sleep. `vigil release` gives it back.

    Example: vigil adopt refactoring --socket default
    """
    if list_ and (target or name):
        raise UsageError("--list shows all sessions: it takes no TARGET and no --name")
    sockets = [_path(socket)] if socket is not None else _sockets()
    if list_:
        _show(connect().candidates(sockets), output)
        return
    if not target:
        raise UsageError("say which session: vigil adopt TARGET; vigil adopt --list shows them")
    session = connect().adopt(target, sockets, name)
    if output == "json":
        print(json.dumps(session))
    else:
        print(f"{session['name']} is watched now: {session['agent']}, pid {session['pid']}")


@click.command()
@name_argument
@reason_option
@output_option
def release(name: str, reason: str | None, output: str) -> None:
    """Watch the adopted session NAME no more; it goes on as it is, with nothing of ours left on it.

    Example: vigil release refactoring
    """
    given = connect().ask("release", name, reason)
    if output == "json":
        print(json.dumps(given))
    else:
        print(f"{name} is yours again: {given['target']} on {given['socket']}, pid {given['pid']}")


def _folder() -> str:
    """Return the folder of the caller's tmux sockets."""
    return os.path.join(os.environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")


def _path(socket: str) -> str:
    path = os.path.abspath(socket) if "/" in socket else os.path.join(_folder(), socket)
    if not _is_socket(path):
        raise UsageError(f"{path} is no socket of a tmux server")
    return path


def _sockets() -> list[str]:
    from vigil.kernel.trust import Untrusted, check_private

    folder = _folder()
    try:
        check_private(folder)
    except Untrusted as error:
        raise Refused(f"{error}. No tmux server in it was asked") from None
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [path for name in names if _is_socket(path := os.path.join(folder, name))]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _show(found: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        print(json.dumps(found))
    elif found:
        rows = [
            [
                one["name"],
                one["agent"] or "-",
                str(one["pid"]),
                str(one["attached"]),
                one["adopted_as"] or "-",
                " ".join(one["command"]),
                one["socket"],
            ]
            for one in found
        ]
        print_table(COLUMNS, rows, output == "wide")
    else:
        print("No tmux session was found; --socket names another server.")
