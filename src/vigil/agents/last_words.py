"""Last words: what the end of an agent's output says of why it ended.

An agent that met a wall says so in the last event of its stream, with the status of the model's answer.
Only events count: an agent may well write about limits in plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from vigil.agents.contract import Adapter
from vigil.agents.walls import EPOCH, resets_at
from vigil.core.model.death import Cause, Words
from vigil.core.model.speech import What
from vigil.text import one_line

CAUSES = {401: Cause.AUTH, 403: Cause.AUTH, 429: Cause.LIMIT}
LIMITED = 429
STATUS = re.compile(r"(?:status:? |API Error: |^)(\d{3})\b")
QWEN = re.compile(r"\[API Error: (\d{3})\b")  # Qwen reports errors as results with success
LAST_EVENTS = 5
RESULT_EVENTS = 200  # Claude Code reports the hooks that run at the end after its result
Event = dict[str, Any]
Said = tuple[int | None, str]  # the status of the answer, and the words
WELL: Said = (None, "")  # it got an answer, so earlier errors are over


def _claude(event: Event) -> Said | None:
    if event.get("type") != "result":
        return None
    status = event.get("api_error_status") if event.get("is_error") is True else None
    text = str(event.get("result", ""))
    if event.get("is_error") is True and status is None and EPOCH.search(text):
        status = LIMITED
    return (status if isinstance(status, int) else None), text


def _codex(event: Event) -> Said | None:
    if event.get("type") == "turn.completed":
        return WELL
    if event.get("type") == "turn.failed" and isinstance(event.get("error"), dict):
        return _with_status(event["error"].get("message"))
    return _with_status(event.get("message")) if event.get("type") == "error" else None


def _opencode(event: Event) -> Said | None:
    error = event.get("error")
    if event.get("type") != "error" or not isinstance(error, dict):
        return None
    data = error.get("data")
    data = data if isinstance(data, dict) else error
    status = data.get("statusCode")
    said = str(data.get("message", ""))
    return (status, said) if isinstance(status, int) else _with_status(said)


def _pi(event: Event) -> Said | None:
    if event.get("type") == "auto_retry_end":
        return _with_status(event.get("finalError"))
    message = event.get("message")
    if event.get("type") == "message_end" and isinstance(message, dict) and message.get("role") == "assistant":
        return _with_status(message.get("errorMessage")) if message.get("stopReason") == "error" else WELL
    return None


def _qwen(event: Event) -> Said | None:
    if event.get("type") != "result":
        return None
    text = str(event.get("result", ""))
    found = QWEN.search(text)
    return (int(found[1]) if found else None), text


def _with_status(text: object) -> Said | None:
    if not isinstance(text, str):
        return None
    found = STATUS.search(text)
    return (int(found[1]) if found else None), text


SPEAKERS: dict[str, Callable[[Event], Said | None]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "pi": _pi,
    "qwen": _qwen,
}
EXIT_STATUS = {"gemini": {145: 401, 147: 403, 173: 429}}  # Gemini exits with the answer's status, cut to 8 bits
SPEAKING = frozenset({*SPEAKERS, *EXIT_STATUS})
WALLS = {What.LIMIT: Cause.LIMIT, What.AUTH: Cause.AUTH}
OPENS = frozenset({What.PROMPT, What.TURN_STARTED, What.THINKS, What.TOOL_STARTED})


def read_last_words(agent: str, lines: Iterable[str], exit_code: int | None, at: float | None = None) -> Words | None:
    """Return why an agent ended, by its last lines or its exit code; None if neither says it.

    `at` is when it printed them: "in two hours" counts from there."""
    status = EXIT_STATUS.get(agent, {}).get(exit_code or 0)
    if status is not None:
        return Words(CAUSES[status], f"{agent} exited with {exit_code}: the answer was {status}")
    speaks = SPEAKERS.get(agent)
    if speaks is None:
        return None
    for event in _events(lines, LAST_EVENTS):
        said = speaks(event)
        if said is not None:
            status, text = said
            if status not in CAUSES:
                return None
            return Words(CAUSES[status], one_line(text) or f"status {status}", resets_at(text[:1000], at))
    return None


def said_last(adapter: Adapter, lines: Iterable[str], at: float) -> Words | None:
    """Return the wall that the last events describe in words, where none has the status of an answer."""
    for event in _events(lines, LAST_EVENTS):
        for said in reversed([one for one in adapter.read_stream({"timestamp": at, **event}) if not one.subagent]):
            if said.what in WALLS:
                return Words(WALLS[said.what], said.text, said.until)
            if said.what in OPENS or (said.what is What.RESULT and not said.failed):
                return None
    return None


def has_result(adapter: Adapter, lines: Iterable[str]) -> bool | None:
    """Say whether a stream ended with a result and nothing began after it; None if that is unknown.

    Unknown: its kind has no results, it printed no events, or its last events are too long."""
    if not adapter.terminal:
        return None
    for event in _events(lines, RESULT_EVENTS):
        said = [one.what for one in adapter.read_stream(event) if not one.subagent]
        if What.RESULT in said:
            return True
        if not OPENS.isdisjoint(said):
            return False
    return None


def _events(lines: Iterable[str], most: int) -> Iterable[Event]:
    """Return the last events of a stream, newest first; skip lines that hold no event."""
    seen = 0
    for line in reversed(list(lines)):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event
            seen += 1
            if seen == most:
                return
