"""What `vigil ls` chooses, and the screen of `--watch`: trouble first, what does not fit is counted."""

from __future__ import annotations

from typing import Any

import pytest

from vigil.cli.ls import money, table_of
from vigil.cli.selection import ORDERS, chosen, matches
from vigil.cli.watch import more, screen

Json = dict[str, Any]


def session(name: str, state: str = "running", health: str = "ok", **more: Any) -> Json:
    found: Json = {
        "name": name,
        "state": state,
        "health": health,
        "agent": "claude",
        "axes": {"activity": None},
        "pid": 1,
        "restarts": {"count": 0, "max": 0},
        "created_at": "2026-01-01T00:00:00Z",
        "last_activity_at": None,
        "usage": None,
        "hold": None,
        "why": "up",
        "incidents": [],
    }
    return found | more


def rows(sessions: list[Json], width: int) -> list[str]:
    return table_of(sessions, False, width)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("shop/backend/coder/0", True),
        ("coder/0", True),
        ("backend/coder/0", True),
        ("backend", True),
        ("shop/backend", True),
        ("shop", True),
        ("shop/*", True),
        ("*/0", True),
        ("coder/1", False),
        ("code", False),
        ("oder/0", False),
        ("back*d", False),
        ("", False),
    ],
)
def test_a_pattern_means_whole_parts_of_a_name(pattern: str, meant: bool) -> None:
    assert matches("shop/backend/coder/0", pattern) is meant


def test_filters_are_all_to_hold_at_once() -> None:
    ill = session("shop/api/coder/1", "crashed", "dead", incidents=["i-1"])
    fleet = [session("a"), session("shop/api/coder/0"), ill, session("b", "crashed", agent="codex")]

    assert chosen(fleet, states=("crashed",), agent="claude") == [ill]
    assert chosen(fleet, team="api") == fleet[1:3]
    assert chosen(fleet, team="shop/api", needs_me=True) == [ill]
    assert chosen(fleet) == fleet


def test_sessions_are_ordered_as_asked() -> None:
    old = session("b", created_at="2026-01-01T00:00:00Z", usage={"cost_usd": 3.0}, last_activity_at="2026-01-03T00:00:00Z")
    new = session("a", created_at="2026-01-02T00:00:00Z", last_activity_at="2026-01-02T00:00:00Z")

    orders = {order: [one["name"] for one in sorted([old, new], key=key)] for order, key in ORDERS.items()}

    assert orders == {"name": ["a", "b"], "age": ["a", "b"], "activity": ["b", "a"], "cost": ["b", "a"]}


def test_a_full_screen_shows_trouble_first_and_counts_the_rest() -> None:
    fleet = [session(f"agent-{n:02}") for n in range(40)]
    fleet[34] = session("agent-34", "crashed", "dead")
    fleet[39] = session("agent-39", "failed", "dead", incidents=["i-1"])

    lines = screen(fleet, "", rows, 80, 24)

    assert len(lines) == 23, "the cursor has a line of its own"
    assert [line.split()[0] for line in lines[:4]] == ["NAME", "agent-39", "agent-34", "agent-00"]
    assert lines[-1] == "19 more: 19 running"


def test_what_is_not_shown_is_told_with_its_trouble() -> None:
    hidden = [session("a"), session("b", "crashed"), session("c", "crashed"), session("d", "stuck"), session("e", "parked")]

    assert more(hidden) == "5 more: 1 stuck, 2 crashed, 1 parked, 1 running"


def test_a_screen_without_its_daemon_says_so_below_what_was_seen_last() -> None:
    lines = screen([session("a")], "what is shown may be old, trying again: " + "x" * 200, rows, 60, 24)

    assert lines[1].startswith("a ")
    assert lines[-1].startswith("what is shown may be old, trying again:") and len(lines[-1]) < 60


@pytest.mark.parametrize(("usd", "shown"), [(0, "-"), (0.0031, "<$0.01"), (0.01, "$0.01"), (12.345, "$12.35")])
def test_less_than_a_cent_is_not_nothing(usd: float, shown: str) -> None:
    assert money(usd) == shown
