"""`vigil ls`: a line for each session, once or as they change."""

from __future__ import annotations

import json
import shutil
import sys
import time
from datetime import datetime
from typing import Any

import click

from vigil.cli.options import output_option
from vigil.cli.table import Column, format_table, print_table, use_colour
from vigil.client import connect
from vigil.words import age

STATE_COLOURS = {
    "running": "green",
    "starting": "cyan",
    "pending": "cyan",
    "ending": "cyan",
    "suspect": "yellow",
    "stuck": "red",
    "crashed": "red",
    "failed": "red",
    "succeeded": "blue",
    "stopped": "grey",
    "parked": "grey",
}
HEALTH_COLOURS = {"ok": "green", "suspect": "yellow", "stalled": "yellow", "unhealthy": "red", "dead": "red", "unknown": "grey"}

COLUMNS = (
    Column("NAME", shrink=True),
    Column("STATE", colour=STATE_COLOURS.get),
    Column("HEALTH", colour=HEALTH_COLOURS.get),
    Column("ACTIVITY"),
    Column("AGENT"),
    Column("RESTARTS"),
    Column("AGE"),
    Column("WHY", shrink=True),
)
WIDE = (
    *COLUMNS[:-1],
    Column("RUNTIME"),
    Column("PID"),
    Column("LAUNCH"),
    Column("CONVERSATION"),
    Column("TOKENS"),
    Column("COST"),
    Column("CWD"),
    COLUMNS[-1],
)


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that have been over for more than a day.")
@click.option("-w", "--watch", is_flag=True, help="Stay, and show changes as they happen.")
@output_option
def ls(everything: bool, watch: bool, output: str) -> None:
    """List sessions, one a line.

    Example: vigil ls --watch"""
    client = connect()
    if watch and output != "json":
        watch_table(client, everything, output == "wide")
        return
    while True:
        sessions = client.sessions(everything)
        if client.trouble:
            click.echo(f"vigil: what is shown may be old: the store cannot be written ({client.trouble})", err=True)
        if output == "json":
            print(json.dumps(sessions), flush=True)
        elif sessions:
            rows = [row_of(session, output == "wide", time.time()) for session in sessions]
            print_table(WIDE if output == "wide" else COLUMNS, rows, output == "wide")
        else:
            print("There are no sessions. To start one: vigil run --name first -- COMMAND")
        if not watch:
            return
        next(client.follow_events())


def row_of(session: dict[str, Any], wide: bool, now: float) -> list[str]:
    activity = session["axes"]["activity"]
    restarts = session["restarts"]
    row = [
        session["name"],
        session["state"],
        session["health"],
        activity["value"] if activity and session["pid"] else "-",
        session["agent"],
        f"{min(restarts['count'], restarts['max'])}/{restarts['max']}" if restarts["max"] else str(restarts["count"]),
        age(now - datetime.fromisoformat(session["created_at"]).timestamp()),
    ]
    if wide:
        conversation = session["conversation"]
        row += [session["runtime"], str(session["pid"] or "-"), session["launch"] or "-"]
        row += [conversation["id"] if conversation else "-", *used(session["usage"]), session["cwd"]]
    return [*row, why_of(session, now)]


def used(usage: dict[str, Any] | None) -> tuple[str, str]:
    """Return a session's tokens, in and out, and their cost; `-` where unknown."""
    if usage is None:
        return "-", "-"
    tokens = f"{amount(usage['input_tokens'])}/{amount(usage['output_tokens'])}"
    counted = usage["input_tokens"] or usage["output_tokens"]
    return tokens if counted else "-", f"${usage['cost_usd']:.2f}" if usage["cost_usd"] else "-"


def amount(count: float) -> str:
    """Return a number in at most five characters."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 100 * size else f"{count / size:.0f}{unit}"
    return str(int(count))


def why_of(session: dict[str, Any], now: float) -> str:
    """Return the reason, and what it waits for; a mark in front means an incident."""
    mark = "! " if session["incidents"] else ""
    return mark + _reason(session, now)


def _reason(session: dict[str, Any], now: float) -> str:
    hold = session["hold"]
    if hold is None:
        return str(session["why"])
    if hold["until"] is None:
        return f"{hold['reason']}: {session['why']}"
    left_s = datetime.fromisoformat(hold["until"]).timestamp() - now
    return f"{hold['reason']} {age(max(0.0, left_s))} left: {session['why']}"


def watch_table(client: Any, everything: bool, wide: bool) -> None:
    """Redraw the table at every event, and once a second for the ages, until Ctrl-C."""
    import threading

    changed = threading.Event()

    def listen() -> None:
        for _ in client.follow_events():
            changed.set()

    threading.Thread(target=listen, daemon=True).start()
    try:
        sys.stdout.write("\x1b[?25l")
        while True:
            changed.clear()
            sessions = client.sessions(everything)
            size = shutil.get_terminal_size()
            columns = WIDE if wide else COLUMNS
            lines = format_table(columns, [row_of(s, wide, time.time()) for s in sessions], size.columns, use_colour())
            lines = lines[: size.lines - 1]
            sys.stdout.write("\x1b[H" + "".join(line + "\x1b[K\n" for line in lines) + "\x1b[J")
            sys.stdout.flush()
            changed.wait(1.0)
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write("\x1b[?25h\n")
