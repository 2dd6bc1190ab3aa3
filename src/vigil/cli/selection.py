"""Selection: which sessions a person means, and in which order they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

Json = dict[str, Any]

TROUBLE = ("stuck", "failed", "crashed", "suspect")  # of states, the worst first
UNWELL = ("unhealthy", "stalled", "needs-input", "throttled")


def matches(name: str, pattern: str) -> bool:
    """Say whether a pattern means a session: its whole name, or whole parts at its end or beginning."""
    parts = name.split("/")
    ends = ["/".join(parts[n:]) for n in range(len(parts))]
    beginnings = ["/".join(parts[:n]) for n in range(1, len(parts))]
    return any(fnmatchcase(part, pattern) for part in (*ends, *beginnings)) or pattern in parts


def team_of(name: str) -> str:
    """Return the workspace and team of a replica; nothing of a plain name."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) == 4 else ""


def needs_human(session: Json) -> bool:
    """Say whether a session waits for a person: it has an open incident, or a question."""
    return bool(session["incidents"]) or session["health"] == "needs-input"


def chosen(
    sessions: Iterable[Json],
    pattern: str | None = None,
    states: tuple[str, ...] = (),
    agent: str | None = None,
    team: str | None = None,
    needs_me: bool = False,
) -> list[Json]:
    """Return the sessions that all of a person's filters let through."""
    return [
        session
        for session in sessions
        if (pattern is None or matches(session["name"], pattern))
        and (not states or session["state"] in states)
        and (agent is None or session["agent"] == agent)
        and (team is None or matches(team_of(session["name"]), team))
        and (not needs_me or needs_human(session))
    ]


def trouble_first(session: Json) -> tuple[int, int, int]:
    """Return the order in which a screen shows sessions: those in trouble stand first."""
    state, health = session["state"], session["health"]
    ill = TROUBLE.index(state) if state in TROUBLE else len(TROUBLE)
    unwell = UNWELL.index(health) if health in UNWELL else len(UNWELL)
    return (0 if session["incidents"] else 1, ill, unwell)


def _moment(session: Json, key: str) -> float:
    found = session[key]
    return datetime.fromisoformat(found).timestamp() if found else 0.0


def _cost(session: Json) -> float:
    return float(session["usage"]["cost_usd"]) if session["usage"] else 0.0


ORDERS: dict[str, Callable[[Json], Any]] = {
    "name": lambda session: session["name"],
    "age": lambda session: (-_moment(session, "created_at"), session["name"]),  # the youngest first
    "activity": lambda session: (-_moment(session, "last_activity_at"), session["name"]),
    "cost": lambda session: (-_cost(session), session["name"]),
}
