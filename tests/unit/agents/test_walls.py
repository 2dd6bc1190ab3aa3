"""When a limit ends, by the words of each agent; whose it is, by their environment; and whether a stream has ended well."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from vigil.agents.accounts import account_of
from vigil.agents.adapters import ADAPTERS
from vigil.agents.last_words import has_result, read_last_words, said_last
from vigil.agents.walls import resets_at
from vigil.core.model.death import Cause, Words
from vigil.daemon.serve.prompts import holds_draft

AT = datetime.fromisoformat("2026-11-16T12:00:00+00:00").timestamp()


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The host is in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("You've hit your usage limit. Try again at 3:45 PM.", "2026-11-16T15:45:00+01:00"),
        ("You've hit your usage limit. Try again at Nov 18th, 2026 3:45 PM.", "2026-11-18T15:45:00+01:00"),
        ("usage limit, try again at 15:45", "2026-11-16T15:45:00+01:00"),
        ("Try again at 12:59 PM", "2026-11-16T12:59:00+01:00"),  # just now: not tomorrow
        ("Try again at 12:30 PM", "2026-11-17T12:30:00+01:00"),
        ("Try again in 3 days 4 hours 5 minutes.", "2026-11-19T16:05:00+00:00"),
        ("Rate limit reached. Please try again in 6m0s. Visit", "2026-11-16T12:06:00+00:00"),
        ("Please try again in 1.5s.", "2026-11-16T12:00:01.500000+00:00"),
        ("please retry after 30 seconds", "2026-11-16T12:00:30+00:00"),
        ("Your quota will reset after 18h23m9s.", "2026-11-17T06:23:09+00:00"),
        ("limit reached, resets 2026-11-16T14:00:00Z", "2026-11-16T14:00:00+00:00"),
        ("limit reached, resets at 2026-11-16T14:00:00+02:00", "2026-11-16T12:00:00+00:00"),
        ("resets 2026-11-16T14:00:00", None),  # without an offset it is no moment
        ("try again in a while", None),
        ("try again in 5 bananas", None),
        ("resets 25:99", None),
        ("try again at 99:99 pm", None),
    ],
)
def test_the_words_say_when_counted_from_when_they_were_said(words: str, moment: str | None) -> None:
    assert resets_at(words, AT) == (pytest.approx(datetime.fromisoformat(moment).timestamp()) if moment else None)


@pytest.mark.parametrize(
    "words", ["try again in " + "9" * 900, "resets " * 140, "try again in " + "1 h " * 200, "reset after 1h" * 70]
)
def test_no_words_take_long_to_read(words: str) -> None:
    begun = time.monotonic()

    resets_at(words[:1000], AT)

    assert time.monotonic() - begun < 1


def test_the_last_words_of_a_stream_are_counted_from_when_they_were_printed() -> None:
    said = {"type": "turn.failed", "error": {"message": "unexpected status 429 Too Many Requests: try again in 2 hours"}}

    words = read_last_words("codex", [json.dumps(said)], 1, AT)

    assert words is not None and words.resets_at == AT + 7200


LIMITED = "You've hit your usage limit. Try again at 3:45 PM."
UNTIL = datetime.fromisoformat("2026-11-16T15:45:00+01:00").timestamp()


@pytest.mark.parametrize(
    ("agent", "events", "expected"),
    [
        ("codex", [{"type": "turn.failed", "error": {"message": LIMITED}}], Words(Cause.LIMIT, LIMITED, UNTIL)),
        ("codex", [{"type": "error", "message": LIMITED}, {"type": "turn.completed"}], None),
        ("codex", [{"type": "error", "message": LIMITED}, {"type": "turn.started"}], None),
        ("codex", [{"type": "turn.failed", "error": {"message": "stream disconnected"}}], None),
        ("claude", [{"type": "result", "is_error": True, "result": LIMITED}], Words(Cause.LIMIT, LIMITED, UNTIL)),
        (
            "claude",
            [{"type": "result", "is_error": True, "result": "Please run /login"}],
            Words(Cause.AUTH, "Please run /login"),
        ),
        ("claude", [{"type": "result", "is_error": False, "result": f"It says: {LIMITED}"}], None),  # it may write about limits
        ("generic", [{"type": "result", "is_error": True, "result": LIMITED}], None),
    ],
)
def test_a_wall_without_a_status_is_known_by_the_last_words(
    agent: str, events: list[dict[str, Any]], expected: Words | None
) -> None:
    assert said_last(ADAPTERS[agent], [json.dumps(event) for event in events], AT) == expected


# Accounts


@pytest.mark.parametrize("agent", sorted(set(ADAPTERS) - {"generic"}))
def test_what_says_who_an_agent_is_makes_another_account(agent: str) -> None:
    adapter, env = ADAPTERS[agent], {"HOME": "/home/me", "PATH": "/bin"}
    mine = account_of(adapter, env)

    assert mine.startswith(f"{agent}-")
    assert account_of(adapter, env | {"PATH": "/usr/bin", "TERM": "xterm"}) == mine
    others = {account_of(adapter, env | {name: "s3cr3t"}) for name in ("HOME", *adapter.identity)}
    assert len(others | {mine}) == len(adapter.identity) + 2
    assert not any("s3cr3t" in account for account in others)


def test_the_limits_of_a_kind_nobody_knows_are_its_own() -> None:
    assert account_of(ADAPTERS["generic"], {"HOME": "/home/me"}) == ""


# Results


INIT: dict[str, Any] = {"type": "system", "subtype": "init", "session_id": "c"}
RESULT: dict[str, Any] = {"type": "result", "subtype": "success", "is_error": False}


@pytest.mark.parametrize(
    ("agent", "events", "expected"),
    [
        ("claude", [INIT, RESULT], True),
        ("claude", [INIT, RESULT, {"type": "system", "subtype": "hook_response"}], True),
        ("claude", [INIT, RESULT | {"is_error": True}], True),  # it has ended its work, badly
        ("claude", [INIT], False),
        ("claude", [INIT, RESULT, INIT], False),
        ("claude", [], None),
        ("claude", [{"type": "brand-new"}], None),
        ("codex", [{"type": "turn.started"}, {"type": "turn.completed"}], True),
        ("codex", [{"type": "turn.started"}], False),
        ("opencode", [{"type": "step_start"}], None),  # it has no such event
        ("generic", [INIT], None),
    ],
)
def test_a_stream_has_ended_with_its_result_or_not_or_nobody_knows(
    agent: str, events: list[dict[str, Any]], expected: bool | None
) -> None:
    assert has_result(ADAPTERS[agent], ["no event", *map(json.dumps, events)]) is expected


# Drafts: as the real ones show them


RULE = "─" * 40
CLAUDE = f"{RULE}\n❯\xa0{{}}\n{RULE}\n  ⏸ manual mode on"
CODEX = "› {}\n\n  scripted default · ~/work\n  ? for shortcuts"


@pytest.mark.parametrize(
    ("agent", "screen", "cursor_x", "expected"),
    [
        ("claude", CLAUDE.format(""), 2, False),
        ("claude", CLAUDE.format('Try "fix lint errors"'), 2, False),  # suggested, not typed
        ("claude", CLAUDE.format("half a draft"), 14, True),
        ("codex", CODEX.format("Ask Codex to do anything"), 2, False),
        ("codex", CODEX.format("half a draft"), 14, True),
        ("generic", "❯ half a draft", 14, False),
    ],
)
def test_what_somebody_has_begun_to_type_is_seen(agent: str, screen: str, cursor_x: int, expected: bool) -> None:
    assert holds_draft(ADAPTERS[agent], screen, cursor_x) is expected
