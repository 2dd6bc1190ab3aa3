"""What the last events of an agent's stream say of why it ended; the shapes are those that the real ones print."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vigil.agents.last_words import CAUSES, SPEAKERS, read_last_words
from vigil.core.model.death import Cause, Words

LIMIT = "API Error: Request rejected (429) · too many"


def claude(status: int | None, text: str, is_error: bool = True) -> dict[str, Any]:
    return {"subtype": "success", "is_error": is_error, "api_error_status": status, "result": text, "type": "result"}


SAID = (
    ("claude", claude(429, LIMIT), Words(Cause.LIMIT, LIMIT)),
    ("claude", claude(401, "Invalid API key"), Words(Cause.AUTH, "Invalid API key")),
    ("claude", claude(403, "forbidden"), Words(Cause.AUTH, "forbidden")),
    ("claude", claude(529, "overloaded"), None),
    (
        "claude",
        claude(None, "usage limit reached|1794900000"),
        Words(Cause.LIMIT, "usage limit reached|1794900000", 1794900000.0),
    ),
    ("claude", claude(None, "done", is_error=False), None),
    ("codex", {"type": "error", "message": "exceeded retry limit, last status: 429 Too Many Requests"}, Cause.LIMIT),
    ("codex", {"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized: no key"}}, Cause.AUTH),
    ("codex", {"type": "error", "message": "stream disconnected"}, None),
    ("opencode", {"type": "error", "error": {"data": {"statusCode": 401, "message": "no key"}}}, Cause.AUTH),
    ("pi", {"type": "auto_retry_end", "success": False, "finalError": '429 {"type":"error"}'}, Cause.LIMIT),
    (
        "pi",
        {"type": "message_end", "message": {"role": "assistant", "stopReason": "error", "errorMessage": "401 no"}},
        Cause.AUTH,
    ),
    ("qwen", {"type": "result", "is_error": False, "result": "[API Error: 401 invalid key]"}, Cause.AUTH),
    ("qwen", {"type": "result", "result": "I looked at the 401 of your API."}, None),
    ("qwen", {"type": "result", "result": "it answered with status 401 as expected"}, None),
    ("generic", claude(429, LIMIT), None),
)


@pytest.mark.parametrize(("agent", "event", "expected"), SAID, ids=lambda value: str(value)[:40])
def test_the_last_event_says_what_wall_an_agent_met(agent: str, event: dict[str, Any], expected: Words | Cause | None) -> None:
    found = read_last_words(agent, ["starting", json.dumps(event)], 1)

    assert (found if isinstance(expected, Words | None) else found and found.cause) == expected


@pytest.mark.parametrize("agent", sorted(SPEAKERS))
def test_an_error_that_was_overcome_says_nothing(agent: str) -> None:
    overcome: dict[str, list[dict[str, Any]]] = {
        "claude": [claude(429, LIMIT), claude(None, "done", is_error=False)],
        "codex": [{"type": "error", "message": "last status: 429"}, {"type": "turn.completed"}],
        "opencode": [{"type": "text"}],
        "pi": [
            {"type": "auto_retry_end", "finalError": "429"},
            {"type": "message_end", "message": {"role": "assistant", "stopReason": "stop"}},
        ],
        "qwen": [{"type": "result", "result": "[API Error: 429]"}, {"type": "result", "result": "done"}],
    }

    assert read_last_words(agent, map(json.dumps, overcome[agent]), 1) is None


@pytest.mark.parametrize(("code", "cause"), [(145, Cause.AUTH), (173, Cause.LIMIT), (0, None), (1, None), (None, None)])
def test_gemini_says_it_by_its_exit_code(code: int | None, cause: Cause | None) -> None:
    found = read_last_words("gemini", [], code)

    assert (found.cause if found else None) == cause


@pytest.mark.parametrize("agent", sorted(SPEAKERS))
@pytest.mark.parametrize(
    "line",
    ["", "null", "[]", "429", '"API Error: 429"', "{", "[" * 5000, '{"type": 5}', '{"type": "result", "result": {"a": 1}}']
    + [
        json.dumps({"type": kind, "error": [], "message": [], "result": None})
        for kind in ("error", "turn.failed", "message_end")
    ],
)
def test_anything_else_says_nothing(agent: str, line: str) -> None:
    assert read_last_words(agent, [line], 1) is None


def test_words_are_one_line() -> None:
    found = read_last_words("claude", [json.dumps(claude(429, "a\nb\x1b[31mc"))], 1)

    assert found is not None
    assert found.text == "a bc"


def test_every_status_has_a_cause_that_holds() -> None:
    assert set(CAUSES.values()) == {Cause.LIMIT, Cause.AUTH}
