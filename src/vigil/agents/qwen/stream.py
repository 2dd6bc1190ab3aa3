"""Qwen Code: what its stream says, where it differs from Claude Code's (0.15.10).

Qwen reports an error as a result with success: only the result's last words tell. A retry leaves no event."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vigil.agents.claude import stream as claude_stream
from vigil.agents.claude.stream import ALIVE
from vigil.agents.shapes import Json, count, flag, moment, table, text, word, words
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

LINE = Voice(conversation="session_id")
ERROR = "[API Error: "
STATUS = re.compile(r"\d{3}\b")


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line says."""
    return STREAM.get(text(event, "type"), claude_stream.read_stream)(event)


def _result(event: Json) -> Iterable[Said]:
    said = text(event, "result") or text(table(event, "error"), "message")
    error = _error_in(said)
    failed = bool(error) or flag(event, "is_error")
    why = words(error or said) if failed else ""
    conversation, usage = word(event, "session_id"), _usage(table(event, "usage"))
    result = Said(What.RESULT, text=why, conversation=conversation, usage=usage, failed=failed)
    ended_by = wall("", _status(error), error, moment(event, "timestamp"))
    return (result, ended_by) if ended_by.what is not What.ERROR else (result,)


def _error_in(said: str) -> str:
    """Return the error at the end of an answer; elsewhere it is only text."""
    return said[said.rfind(ERROR) :].strip() if ERROR in said and said.rstrip().endswith("]") else ""


def _status(error: str) -> float | None:
    found = STATUS.match(error, len(ERROR))
    return float(found[0]) if found else None


def _usage(usage: Json) -> Usage:
    cached = count(usage, "cache_read_input_tokens")  # part of the input; Claude counts it apart
    return Usage(count(usage, "input_tokens"), count(usage, "output_tokens"), cached)


def _system(event: Json) -> Iterable[Said]:
    return SUBTYPES.get(text(event, "subtype"), claude_stream.read_stream)(event)


def _task_started(event: Json) -> Iterable[Said]:
    data = table(event, "data")
    kind = word(data, "subagent_type")
    return (Said(What.SUBAGENT_STARTED, name=kind, id=word(data, "task_id")),) if kind else ALIVE


def _task_told(event: Json) -> Iterable[Said]:
    data = table(event, "data")
    status = word(data, "status")
    if status not in claude_stream.ENDED_TASKS | {"cancelled"}:
        return ALIVE
    return (Said(What.SUBAGENT_ENDED, id=word(data, "task_id"), text=status, failed=status != "completed"),)


SUBTYPES: dict[str, Reader] = {
    "task_started": _task_started,
    "task_notification": _task_told,
    "session_start": LINE.says(What.STARTED),
    "session_end": LINE.says(What.ENDED),
}
STREAM: dict[str, Reader] = {"result": _result, "system": _system}
