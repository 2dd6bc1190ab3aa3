"""The stream of Pi: what one line of `--mode json` says (0.73).

Pi may retry a failed run after its `agent_end`, and exits with 0 after a final failure. Pi's turn is one answer
of the model; ours is everything from a prompt to the last answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from vigil.agents.shapes import Json, count, flag, later, moment, number, rows, table, text, word, words
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

Reader = Callable[[Json], Iterable[Said]]
ALIVE = (Said(What.ALIVE),)
STATUS = re.compile(r"^(\d{3})\b")
FAILED = frozenset({"error", "aborted"})  # why an answer stopped


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `--mode json` says."""
    return STREAM.get(text(event, "type"), _unknown)(event)


def _unknown(event: Json) -> Iterable[Said]:
    return (Said(What.UNKNOWN, name=word(event, "type")),)


def _alive(_event: Json) -> Iterable[Said]:
    return ALIVE


def _session(event: Json) -> Iterable[Said]:
    return (Said(What.STARTED, moment(event, "timestamp"), conversation=word(event, "id")),)


def _agent_start(_event: Json) -> Iterable[Said]:
    return (Said(What.TURN_STARTED),)


def _turn_start(_event: Json) -> Iterable[Said]:
    return (Said(What.THINKS),)


def _message_start(event: Json) -> Iterable[Said]:
    message = table(event, "message")
    return (Said(What.PROMPT, moment(message, "timestamp")),) if text(message, "role") == "user" else ALIVE


def _message_end(event: Json) -> Iterable[Said]:
    message = table(event, "message")
    if text(message, "role") != "assistant":
        return ALIVE
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


def _tool_start(event: Json) -> Iterable[Said]:
    return (Said(What.TOOL_STARTED, name=word(event, "toolName"), id=word(event, "toolCallId")),)


def _tool_end(event: Json) -> Iterable[Said]:
    failed = flag(event, "isError")
    return (Said(What.TOOL_ENDED, name=word(event, "toolName"), id=word(event, "toolCallId"), failed=failed),)


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


def _compacted(_event: Json) -> Iterable[Said]:
    return (Said(What.COMPACTED),)


STREAM: dict[str, Reader] = {
    "session": _session,
    "agent_start": _agent_start,
    "agent_end": _agent_end,
    "turn_start": _turn_start,
    "turn_end": _alive,
    "message_start": _message_start,
    "message_update": _alive,
    "message_end": _message_end,
    "tool_execution_start": _tool_start,
    "tool_execution_update": _alive,
    "tool_execution_end": _tool_end,
    "auto_retry_start": _retry_start,
    "auto_retry_end": _retry_end,
    "compaction_start": _alive,
    "compaction_end": _compacted,
    "queue_update": _alive,
    "session_info_changed": _alive,
    "thinking_level_changed": _alive,
}
