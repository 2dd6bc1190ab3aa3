"""`vigil ls`: a line for each session, once or as they change."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any

import click

from vigil.cli.options import complete_name, output_option
from vigil.cli.selection import ORDERS, chosen
from vigil.cli.table import Column, format_table, terminal_width, use_colour
from vigil.client import Client, connect
from vigil.errors import UsageError
from vigil.words import age

Json = dict[str, Any]

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
    Column("NAME", whole=True),
    Column("STATE", colour=STATE_COLOURS.get),
    Column("HEALTH", colour=HEALTH_COLOURS.get, leaves=3),
    Column("ACTIVITY", leaves=2),
    Column("AGENT", leaves=1),
    Column("RESTARTS", leaves=6),
    Column("AGE", leaves=4),
    Column("", colour={"!": "red"}.get),  # the mark of an incident
    Column("WHY", shrink=True, leaves=5, least=24),
)
WIDE = (
    *COLUMNS[:-2],
    Column("RUNTIME"),
    Column("PID"),
    Column("LAUNCH"),
    Column("CONVERSATION"),
    Column("TOKENS"),
    Column("COST"),
    Column("CWD"),
    *COLUMNS[-2:],
)


@click.command()
@click.argument("pattern", required=False, shell_complete=complete_name)
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that have been over for more than a day.")
@click.option("-w", "--watch", "stay", is_flag=True, help="Stay, and show changes as they happen: trouble first.")
@click.option("--needs-me", is_flag=True, help="Only those that wait for a person.")
@click.option("--state", "states", multiple=True, metavar="S", help="Only those in this state; may be given again.")
@click.option("--agent", metavar="A", help="Only agents of this kind.")
@click.option("--team", metavar="T", help="Only replicas of this team.")
@click.option("--sort", "order", type=click.Choice(list(ORDERS)), default="name", help="In which order (default: name).")
@output_option
def ls(
    pattern: str | None,
    everything: bool,
    stay: bool,
    needs_me: bool,
    states: tuple[str, ...],
    agent: str | None,
    team: str | None,
    order: str,
    output: str,
) -> None:
    """List sessions, one a line: all, or those that PATTERN means (a team, a role, 'shop/*').

    Example: vigil ls --watch"""
    if unknown := [state for state in states if state not in STATE_COLOURS]:
        raise UsageError(f"{unknown[0]!r} is no state; there are: {', '.join(STATE_COLOURS)}")

    def choose(client: Client) -> list[Json]:
        found = client.sessions(everything or bool(states))
        return sorted(chosen(found, pattern, states, agent, team, needs_me), key=ORDERS[order])

    client, wide = connect(), output == "wide"
    if stay and output != "json":
        from vigil.cli.watch import WatchedSessions, watch

        watch(WatchedSessions(client, choose), lambda sessions, width: table_of(sessions, wide, width or None))
        return
    while True:
        sessions = choose(client)
        if client.why_old:
            click.echo(f"vigil: {client.why_old}", err=True)
        if output == "json":
            print(json.dumps(sessions), flush=True)
        elif sessions:
            print("\n".join(table_of(sessions, wide, terminal_width(wide))))
        else:
            print(_none(filtered=bool(pattern or states or agent or team or needs_me)))
        if not stay:
            return
        next(client.follow_events())


def _none(filtered: bool) -> str:
    if filtered:
        return "No session is like that; vigil ls --all shows all there are"
    return "There are no sessions. To start one: vigil run --name first -- COMMAND"


def table_of(sessions: list[Json], wide: bool, width: int | None) -> list[str]:
    """Return a title, and a line for each session."""
    rows = [row_of(session, wide, time.time()) for session in sessions]
    return format_table(WIDE if wide else COLUMNS, rows, width, use_colour())


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
    return [*row, "!" if session["incidents"] else "", why_of(session, now)]


def used(usage: dict[str, Any] | None) -> tuple[str, str]:
    """Return a session's tokens, in and out, and their cost; `-` where unknown."""
    if usage is None:
        return "-", "-"
    tokens = f"{amount(usage['input_tokens'])}/{amount(usage['output_tokens'])}"
    counted = usage["input_tokens"] or usage["output_tokens"]
    return tokens if counted else "-", money(usage["cost_usd"])


def money(usd: float) -> str:
    """Return a cost; what is less than a cent is not nothing."""
    return "-" if not usd else "<$0.01" if usd < 0.01 else f"${usd:.2f}"


def amount(count: float) -> str:
    """Return a number in at most five characters."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 100 * size else f"{count / size:.0f}{unit}"
    return str(int(count))


def why_of(session: dict[str, Any], now: float) -> str:
    """Return the reason, and what it waits for."""
    hold = session["hold"]
    if hold is None:
        return str(session["why"])
    if hold["until"] is None:
        return f"{hold['reason']}: {session['why']}"
    left_s = datetime.fromisoformat(hold["until"]).timestamp() - now
    return f"{hold['reason']} {age(max(0.0, left_s))} left: {session['why']}"
