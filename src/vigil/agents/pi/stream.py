"""The stream of Pi: what one line of `--mode json` says (0.73).

Pi may retry a failed run after its `agent_end`, and exits with 0 after a final failure. Pi's turn is one answer
of the model; ours is everything from a prompt to the last answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vigil.agents.shapes import Json, count, flag, later, moment, number, rows, table, text, word, words
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

LINE = Voice()
ALIVE = LINE.says(What.ALIVE)
STATUS = re.compile(r"^(\d{3})\b")
FAILED = frozenset({"error", "aborted"})  # why an answer stopped


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `--mode json` says."""
    return LINE.read(event, STREAM)


def _message_start(event: Json) -> Iterable[Said]:
    message = table(event, "message")
    return (Said(What.PROMPT, moment(message, "timestamp")),) if text(message, "role") == "user" else ALIVE(event)


def _message_end(event: Json) -> Iterable[Said]:
    message = table(event, "message")
    if text(message, "role") != "assistant":
        return ALIVE(event)
    at, name = moment(message, "timestamp"), word(message, "model")
    return (Said(What.ALIVE, at, name=name, usage=usage_of(table(message, "usage"))),)


def usage_of(usage: Json) -> Usage:
    """Return what one answer used; Pi counts cached input apart."""
    cached = count(usage, "cacheRead")
    read = count(usage, "input") + cached + count(usage, "cacheWrite")
    return Usage(read, count(usage, "output"), cached, number(table(usage, "cost"), "total"))


def wall_in(message: Json) -> Said:
    """Return the wall that ended an answer, or the error."""
    said = text(message, "errorMessage")
    return wall("", _status(said), said, moment(message, "timestamp"))


def _status(said: str) -> float | None:
    found = STATUS.match(said)
    return float(found[1]) if found else None


def _agent_end(event: Json) -> Iterable[Said]:
    answers = [message for message in rows(event, "messages") if text(message, "role") == "assistant"]
    last = answers[-1] if answers else {}
    reason = text(last, "stopReason")
    why = text(last, "errorMessage") if reason in FAILED else ""
    result = Said(What.RESULT, text=words(why), failed=reason in FAILED)
    met = wall_in(last)
    return (result, met) if reason == "error" and met.what is What.AUTH else (result,)  # Pi may retry a limit: see _retry_end


def _retry_start(event: Json) -> Iterable[Said]:
    until = later(number(event, "delayMs"), moment(event, "timestamp"))
    return (Said(What.RETRIES, text=words(text(event, "errorMessage")), until=until),)


def _retry_end(event: Json) -> Iterable[Said]:
    if flag(event, "success"):
        return (Said(What.SPEAKS),)
    said = text(event, "finalError")
    return (wall("", _status(said), said, moment(event, "timestamp")),)


STREAM: dict[str, Reader] = {
    "session": Voice(at="timestamp", conversation="id").says(What.STARTED),
    "agent_start": LINE.says(What.TURN_STARTED),
    "agent_end": _agent_end,
    "turn_start": LINE.says(What.THINKS),
    "turn_end": ALIVE,
    "message_start": _message_start,
    "message_update": ALIVE,
    "message_end": _message_end,
    "tool_execution_start": LINE.says(What.TOOL_STARTED, name="toolName", id="toolCallId"),
    "tool_execution_update": ALIVE,
    "tool_execution_end": LINE.says(What.TOOL_ENDED, name="toolName", id="toolCallId", failed="isError"),
    "auto_retry_start": _retry_start,
    "auto_retry_end": _retry_end,
    "compaction_start": ALIVE,
    "compaction_end": LINE.says(What.COMPACTED),
    "queue_update": ALIVE,
    "session_info_changed": ALIVE,
    "thinking_level_changed": ALIVE,
}
