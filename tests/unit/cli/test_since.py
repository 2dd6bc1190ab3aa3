"""Moments as a person types them, and events as they read them."""

from __future__ import annotations

import ast
import time
from datetime import datetime
from pathlib import Path

import click
import pytest

from vigil.cli.sentences import SENTENCES, sentence_of
from vigil.cli.since import moment

SOURCE = Path(__file__).parents[3] / "src" / "vigil"
NOW = datetime(2026, 11, 18, 15, 30).timestamp()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("22:00", datetime(2026, 11, 17, 22, 0)),
        ("15:30", datetime(2026, 11, 18, 15, 30)),
        ("9:05:30", datetime(2026, 11, 18, 9, 5, 30)),
        ("today", datetime(2026, 11, 18)),
        ("Yesterday", datetime(2026, 11, 17)),
        ("2026-11-01", datetime(2026, 11, 1)),
        ("2026-11-01 08:00", datetime(2026, 11, 1, 8)),
        ("8h", datetime(2026, 11, 18, 7, 30)),
        ("90", datetime(2026, 11, 18, 15, 28, 30)),
        ("now", datetime(2026, 11, 18, 15, 30)),
    ],
)
def test_a_moment_is_what_a_person_means_by_it(text: str, meant: datetime) -> None:
    assert moment(text, NOW) == meant.timestamp()


def test_a_moment_of_the_interface_has_its_own_offset() -> None:
    assert moment("2026-11-18T10:00:00Z", NOW) == moment("2026-11-18T12:00:00+02:00", NOW)


@pytest.mark.parametrize("text", ["", "tomorrow", "25:00", "-5m", "soon", "8 hours", "nan"])
def test_what_is_no_moment_says_what_is(text: str) -> None:
    with pytest.raises(click.BadParameter, match="22:00"):
        moment(text, NOW)


def test_local_time_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert moment("2026-11-18", NOW) == moment("2026-11-18T05:00:00Z", NOW)
    finally:
        monkeypatch.undo()
        time.tzset()


def logged_kinds() -> set[str]:
    """Return every kind of event that the source logs by a literal."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name in ("log", "note", "Noted", "_on_change"):
                    words = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                    found |= {word for word in words if "." in word and " " not in word}
    return found


RARE = {"hooks.flooded", "orphan.reaping", "incident.told-after-all", "incident.reaction", "keeper.misunderstood"}


def test_every_kind_of_event_has_its_sentence() -> None:
    kinds = logged_kinds()

    assert len(kinds) > 30
    assert kinds - set(SENTENCES) - RARE == set()


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (
            "session.died",
            {
                "cause": "crash",
                "exit_code": 3,
                "signal": None,
                "charged": True,
                "uptime_s": 61.0,
                "why": "it exited with 3",
            },
            "died with exit 3 after 1.0 min (crash, charged): it exited with 3",
        ),
        ("session.died", {"cause": "operator", "signal": 15, "why": "stopped"}, "died by SIGTERM (operator): stopped"),
        ("session.state", {"from": "running", "to": "crashed", "why": "crash"}, "running → crashed: crash"),
        ("shift.asked", {"roles": ["a/b/c"], "actor": "operator"}, "a shift of a/b/c asked for by operator"),
        ("session.launched", {}, "session.launched"),
        ("later.kind", {"a": 1, "b": None}, "later.kind a=1"),
    ],
)
def test_an_event_reads_as_a_sentence(kind: str, data: dict[str, object], words: str) -> None:
    assert sentence_of(kind, data) == words
