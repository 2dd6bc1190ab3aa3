"""`vigil run`: declares a session and launches it."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from vigil.cli.options import duration, limit_options, output_option
from vigil.client import connect
from vigil.errors import UsageError

LATER = {"zellij"}


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--name", default=None, help="Its name; one is made up if none is given.")
@click.option(
    "--agent",
    default="generic",
    help="What runs: generic, claude, codex, gemini, opencode, qwen, pi, or one of your configuration.",
)
@click.option("--runtime", default="tmux", metavar="[tmux|headless]", help="Where it runs (default: tmux).")
@click.option("--restart", type=click.Choice(["always", "on-failure", "never"]), help="When it comes back (default: never).")
@click.option("--max-restarts", type=click.IntRange(0), help="Charged restarts before it is given up; 0 (default): no limit.")
@click.option("--backoff-base", type=duration, metavar="S", help="The first wait before a restart (default: 5s); it doubles.")
@click.option("--cwd", default=".", metavar="D", help="The folder it works in (default: this one).")
@click.option("--env", multiple=True, metavar="K=V", help="Adds to its environment; may be given again.")
@limit_options
@click.option("--sandbox", is_flag=True, help="Confine it with bwrap: it sees this folder, and the system read-only.")
@click.option("--sandbox-read", multiple=True, metavar="PATH", help="What else it may read; may be given again.")
@click.option("--sandbox-write", multiple=True, metavar="PATH", help="What else it may read and write, such as ~/.claude.")
@click.option("--sandbox-offline", is_flag=True, help="Without the network.")
@click.option("--attach", is_flag=True, help="Show its terminal at once; Ctrl-b d leaves.")
@output_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run(
    name: str | None,
    agent: str,
    runtime: str,
    restart: str | None,
    max_restarts: int | None,
    backoff_base: float | None,
    cwd: str,
    env: tuple[str, ...],
    sandbox: bool,
    sandbox_read: tuple[str, ...],
    sandbox_write: tuple[str, ...],
    sandbox_offline: bool,
    attach: bool,
    output: str,
    command: tuple[str, ...],
    **limits: str | None,
) -> None:
    """Declare a session and launch it; prints its name.

    Example: vigil run --name fix-tests --restart on-failure -- claude -p "fix the tests"
    """
    _check(runtime, attach, cwd)
    if attach:
        from vigil.cli.attach import become_client, check_terminal, client_argv

        check_terminal()  # before it creates anything
    wanted = {
        "name": name,
        "agent": agent,
        "runtime": runtime,
        "command": [_utf8(word, "the command") for word in command],
        "cwd": _utf8(os.path.abspath(os.path.expanduser(cwd)), "--cwd"),
        "env": environment(()),
        "own_env": given_environment(env),
        "restart": restart,
        "max_restarts": max_restarts,
        "backoff_base_s": backoff_base,
        "umask": read_umask(),
        **limits,
        "sandbox": _sandbox(sandbox, sandbox_read, sandbox_write, sandbox_offline),
    }
    client = connect()
    session = client.run(wanted)
    print(json.dumps(session) if output == "json" else session["name"])
    _warn(session)
    if attach:
        sys.stdout.flush()
        become_client(client_argv(client.home, client.terminal(session["name"])))


def _check(runtime: str, attach: bool, cwd: str) -> None:
    """Refuse a runtime that is not there, a terminal where there is none, and no folder."""
    if not cwd:
        raise UsageError("--cwd is empty: it names the folder the agent works in")
    if runtime in LATER:
        raise UsageError(f"--runtime {runtime} is not there yet; use tmux or headless")
    if runtime not in ("tmux", "headless"):
        raise UsageError(f"{runtime!r} is no runtime; use tmux or headless")
    if attach and runtime == "headless":
        raise UsageError("--attach needs a terminal, which --runtime headless has not; vigil logs --follow shows its output")


def read_umask() -> int:
    """Return our umask, which the agent gets; it can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _sandbox(wanted: bool, read: tuple[str, ...], write: tuple[str, ...], offline: bool) -> dict[str, Any] | None:
    if not wanted:
        if read or write or offline:
            raise UsageError("--sandbox-read, --sandbox-write and --sandbox-offline need --sandbox beside them")
        return None
    paths = ([_utf8(os.path.abspath(os.path.expanduser(path)), "a path") for path in given] for given in (read, write))
    return dict(zip(("read", "write"), paths, strict=True)) | {"network": not offline}


def _warn(session: dict[str, Any]) -> None:
    """Say so if the session does not run: its launch failed, or a limit or a lost keeper holds it."""
    death = session["last_death"]
    held = session["hold"] is not None and session["hold"]["reason"] in ("limit", "auth", "keeper")
    if held or (death is not None and death["cause"] == "launch-failed"):
        click.echo(f"vigil: {session['name']} is {session['state']}: {session['why']}", err=True)


def environment(extra: tuple[str, ...]) -> dict[str, str]:
    """Return our environment with the given pairs; warn of values left out, as not UTF-8."""
    found = {}
    for key, value in os.environ.items():
        try:
            (key + value).encode()
        except UnicodeEncodeError:
            click.echo(f"vigil: {key!a} is left out of the environment: it is not UTF-8", err=True)
        else:
            found[key] = value
    return found | given_environment(extra)


def given_environment(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the pairs of the command line: the user's own, even where they look like an agent's marker."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError("--env takes K=V: what was given has no name, or no =")
        found[key] = _utf8(value, f"--env {key}")
    return found


def _utf8(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} is not UTF-8") from None
    return text
