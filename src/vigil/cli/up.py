"""`vigil up`, `plan`, `down`, `scale`: applies a manifest, shows it, takes it down; changes a role's replicas."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections import Counter
from typing import Any

import click

from vigil.cli.options import output_option
from vigil.cli.run import environment, read_umask
from vigil.cli.table import Column, print_table
from vigil.client import Client, connect
from vigil.errors import Refused, UsageError, VigilError
from vigil.kernel.theirs import read_text
from vigil.text import one_line

Json = dict[str, Any]
STEPS = (Column("DO"), Column("WHAT", shrink=True), Column("WHY", shrink=True))
LAUNCHES = ("create", "replace", "start")
UP = ("running", "suspect", "stuck")
UNSETTLED = ("starting", "ending")
POLL_S = 0.2
SETTLE_S = 600.0
MANIFEST_BYTES = 1 << 20  # as many as the daemon takes

file_argument = click.argument("file", required=False, default="vigil.toml", type=click.Path(dir_okay=False))
replace_option = click.option("--replace", is_flag=True, help="Restart replicas that run what was declared before.")


@click.command()
@file_argument
@click.option("--dry-run", is_flag=True, help="Only show what would be done, as `vigil plan` does.")
@replace_option
@click.option("--yes", is_flag=True, help="Agree to what it runs, without being asked.")
@output_option
def up(file: str, dry_run: bool, replace: bool, yes: bool, output: str) -> None:
    """Make the teams of a manifest so (default: vigil.toml); what is as declared already is not touched.

    The first time, and when they change, it shows its commands, variables and folders, and asks.

    Example: vigil up vigil.toml
    """
    manifest = _read(file, replace)
    daemon = connect()
    planned = daemon.plan(manifest)
    if dry_run:
        _show(planned, output)
        return
    if planned["asks"] and not yes:
        ask(file, planned["asks"], output)
    done = daemon.apply({**manifest, "agreed": [use["digest"] for use in planned["asks"]]})
    _show(done, output)
    if output != "json":
        _follow(daemon, done)


@click.command()
@file_argument
@replace_option
@output_option
def plan(file: str, replace: bool, output: str) -> None:
    """Show what `vigil up` would do and why, and which replicas wait or rest, each with its reason.

    Example: vigil plan vigil.toml
    """
    _show(connect().plan(_read(file, replace)), output)


@click.command()
@click.argument("team", required=False)
@click.option("--all", "everything", is_flag=True, help="What every manifest declared, of all workspaces.")
@output_option
def down(team: str | None, everything: bool, output: str) -> None:
    """End and forget what a manifest declared: TEAM, or the workspace of this folder's vigil.toml.

    Sessions started by `vigil run` stay.

    Example: vigil down backend
    """
    if team is not None and everything:
        raise UsageError("TEAM and --all are two answers to what is to end: give one of them")
    workspace = None if team is not None or everything else _workspace_here()
    _show(connect().down(team, workspace), output)


@click.command(context_settings={"ignore_unknown_options": True})  # so that -1 reads as a number, and is refused as one
@click.argument("role", metavar="TEAM/ROLE")
@click.argument("replicas", type=int)
@output_option
def scale(role: str, replicas: int, output: str) -> None:
    """Give a role so many replicas, until the next `vigil up`; the newest are ended first.

    Example: vigil scale backend/coder 4
    """
    daemon = connect()
    done = daemon.scale(role, replicas)
    _show(done, output)
    if output != "json":
        _follow(daemon, done)


def _workspace_here() -> str:
    """Return the workspace that this folder's manifest names; nothing else may end with it."""
    import tomllib

    try:
        found = tomllib.loads(_text_of("vigil.toml")).get("workspace")
    except FileNotFoundError:
        raise UsageError("there is no vigil.toml in this folder: name a TEAM, or say --all") from None
    except tomllib.TOMLDecodeError as error:
        raise VigilError(f"vigil.toml: {error}; name a TEAM, or say --all") from None
    if not isinstance(found, str):
        raise VigilError("vigil.toml names no workspace: name a TEAM, or say --all")
    return found


def _read(file: str, replace: bool) -> Json:
    try:
        text = _text_of(file)
    except FileNotFoundError:
        raise VigilError(f"{file} does not exist: name a manifest, or write one (docs/manifest.md)") from None
    folder, env = os.path.abspath(os.path.dirname(file)), environment(())
    return {"text": text, "path": file, "folder": folder, "replace": replace, "env": env, "umask": read_umask()}


def _text_of(file: str) -> str:
    try:
        return read_text(file, MANIFEST_BYTES)
    except FileNotFoundError:
        raise
    except UnicodeDecodeError:
        raise VigilError(f"{file} is not UTF-8") from None
    except ValueError as error:
        raise VigilError(f"{file}: {error}") from None
    except OSError as error:
        raise VigilError(f"{file}: {error.strerror}") from None


def ask(file: str, uses: list[Json], output: str) -> None:
    """Show what a manifest runs that was not agreed to before, and ask; Refused without a yes."""
    if output != "json":
        print(f"{file} is to run, as you:", file=sys.stderr)
        for line in (line for use in uses for line in _told(use)):
            print(line, file=sys.stderr)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        words = f"{file} runs {len(uses)} commands that you have not agreed to, and there is no terminal to ask on"
        raise Refused(f"{words}: read it, then vigil up --yes")
    if not click.confirm("Apply it?", err=True):
        raise Refused("nothing was applied, as you said")


def _told(use: Json) -> list[str]:
    with_ = ", ".join(f"{name}=…" for name in use["variables"]) or "no variables of its own"
    seen = f"confined by {use['sandbox']}" if use["sandbox"] else "not confined: it may read and write what you may"
    lines = [shlex.join(use["command"]), f"in {use['cwd']}", f"with {with_}", seen]
    return [f"  {one_line(use['role'])}", *(f"    {one_line(line)}" for line in lines)]


def _follow(daemon: Client, done: Json) -> None:
    """Say last how the launched replicas are; on a terminal as they come up, and Ctrl-C leaves them to it."""
    wanted = {step["slot"] for step in done["steps"] if step["do"] in LAUNCHES}
    if not wanted:
        return
    live, deadline = sys.stderr.isatty(), time.monotonic() + SETTLE_S
    while True:
        found = [session for session in daemon.sessions(everything=True) if session["name"] in wanted]
        if not live or time.monotonic() > deadline or not any(_is_unsettled(session) for session in found):
            break
        print(f"\r\x1b[K{progress(found, len(wanted))}", end="", file=sys.stderr, flush=True)
        time.sleep(POLL_S)
    print("\r\x1b[K" if live else "", end="", file=sys.stderr, flush=True)
    print(f"{progress(found, len(wanted))}; vigil ls shows them")


def progress(found: list[Json], wanted: int) -> str:
    """Return how many are up, and what the others are or wait for."""
    others = Counter(_standing(session) for session in found if session["state"] not in UP)
    return ", ".join(
        [f"{len(found) - others.total()} of {wanted} up", *(f"{number} {what}" for what, number in others.items())]
    )


def _standing(session: Json) -> str:
    hold = session["hold"]
    return f"waiting ({hold['reason']})" if session["state"] == "pending" and hold is not None else str(session["state"])


def _is_unsettled(session: Json) -> bool:
    hold = session["hold"]
    return session["state"] in UNSETTLED or (hold is not None and hold["reason"] in ("pace", "survivor"))


def _show(plan: Json, output: str) -> None:
    if output == "json":
        print(json.dumps(plan))
        return
    rows = [[step["do"], step["slot"] or step["role"], step["why"]] for step in plan["steps"]]
    rows += [["hold", held["slot"], _held(held)] for held in plan["held"]]
    if rows:
        print_table(STEPS, rows, wide=output == "wide")
    else:
        print("everything is as declared")
    missing = plan.get("missing", [])
    for line in [*missing, "vigil up would apply nothing until that is there"] if missing else []:
        print(f"vigil: {line}", file=sys.stderr)


def _held(held: Json) -> str:
    until = f" until {held['until']}" if held["until"] else ""
    return f"{held['reason']}{until}: {held['why']}"
