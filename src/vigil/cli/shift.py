"""`vigil shift`: replaces the replicas of a team, and shows the progress until it is over."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import click

from vigil.cli.options import output_option
from vigil.cli.table import Column, print_table
from vigil.client import Client, connect
from vigil.errors import VigilError

Json = dict[str, Any]
ROWS = (Column("ROLE"), Column("OUTCOME"), Column("WHY", shrink=True))
POLL_S = 0.3
TAKEN_DOWN = {"at": None, "done": False, "why": "its role was taken down meanwhile"}


@click.command()
@click.argument("team")
@click.option("--role", help="Only this role of the team.")
@click.option("--timeout", default="10m", show_default=True, help="How long each phase of a role may take: 90s, 10m, 2h.")
@click.option("--abort", is_flag=True, help="End the shift that is under way: the old replicas that still serve stay.")
@click.option("--no-wait", is_flag=True, help="Return at once; `vigil events --follow` tells how it goes on.")
@output_option
def shift(team: str, role: str | None, timeout: str, abort: bool, no_wait: bool, output: str) -> None:
    """Replace the replicas of TEAM, one role after another: new ones are ready before old ones are drained.

    If a new one dies or is not ready in time, the shift is given up and the old ones go on. Ctrl-C leaves it going on.

    Example: vigil shift backend --role coder"""
    daemon = connect()
    if abort:
        _say(daemon, daemon.abort_shift(team, role)["roles"], output)
        return
    keys = daemon.shift(team, role, timeout)["roles"]
    if no_wait:
        _say(daemon, keys, output)
        return
    if not _follow(daemon, keys, output):
        raise VigilError(_given_up(daemon, keys))


def _follow(daemon: Client, keys: list[str], output: str) -> bool:
    """Show the progress until the shift of all roles is over; say whether all of it was done."""
    shown = ""
    while any(role["shift"] for role in _roles(daemon, keys)):
        line = "; ".join(f"{role['name']}: {_progress(role)}" for role in _roles(daemon, keys) if role["shift"])
        if line != shown and sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        shown = line
        time.sleep(POLL_S)
    if shown and sys.stderr.isatty():
        print(file=sys.stderr)
    _say(daemon, keys, output)
    return all(_is_done(role) for role in _roles(daemon, keys))


def _is_done(role: Json) -> bool:
    return bool(role["shifted"] and role["shifted"]["done"])


def _progress(role: Json) -> str:
    found = role["shift"]
    if found["phase"] == "waiting":
        return f"waits, {found['place']} of {found['of']}"
    return f"{found['phase']} {len(found['new' if found['phase'] == 'launching' else 'old'])}"


def _say(daemon: Client, keys: list[str], output: str) -> None:
    roles = _roles(daemon, keys)
    if output == "json":
        print(json.dumps(roles))
        return
    print_table(ROWS, [[role["name"], *_outcome(role)] for role in roles], wide=output == "wide")


def _outcome(role: Json) -> tuple[str, str]:
    if role["shift"]:
        return role["shift"]["phase"], ""
    shifted = role["shifted"] or {"done": False, "why": "it was not shifted"}
    return ("done" if shifted["done"] else "given up"), shifted["why"]


def _given_up(daemon: Client, keys: list[str]) -> str:
    role = next(role for role in _roles(daemon, keys) if not _is_done(role))
    after = "" if role["shifted"] is TAKEN_DOWN else "; the old replicas go on"
    return f"the shift of {role['name']} was given up: {_outcome(role)[1]}{after}"


def _roles(daemon: Client, keys: list[str]) -> list[Json]:
    """Return these roles as they are now, also those that are gone."""
    found = {role["name"]: role for role in daemon.roles()}
    return [found.get(key, {"name": key, "shift": None, "shifted": TAKEN_DOWN}) for key in keys]
