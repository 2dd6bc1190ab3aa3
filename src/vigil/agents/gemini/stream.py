"""The stream of Gemini CLI: what one line of `-o stream-json` says (0.61).

Retries leave no event: only a failed result, or the exit code, holds the status of the last answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vigil.agents.shapes import Json, count, later, moment, table, text, word
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

LINE = Voice(at="timestamp")
STATUS = re.compile(r"\"code\": ?(\d{3})\b|\bstatus:? (\d{3})\b")
QUOTA = re.compile(r"RESOURCE_EXHAUSTED|exhausted your (?:daily )?(?:quota|capacity)|[Qq]uota exceeded")
RESET = re.compile(r"reset after (?:(\d{1,3})h)?(?:(\d{1,3})m)?(?:(\d{1,3})s)?")


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `-o stream-json` says."""
    return LINE.read(event, STREAM)


def _message(event: Json) -> Iterable[Said]:
    return (LINE.say(event, What.PROMPT if text(event, "role") == "user" else What.ALIVE),)


def _tool_result(event: Json) -> Iterable[Said]:
    return (LINE.say(event, What.TOOL_ENDED, id=word(event, "tool_id"), failed=text(event, "status") == "error"),)


def _error(event: Json) -> Iterable[Said]:
    return (wall_in(text(event, "message"), moment(event, "timestamp")),)


def _result(event: Json) -> Iterable[Said]:
    at, stats = moment(event, "timestamp"), table(event, "stats")
    usage = Usage(count(stats, "input_tokens"), count(stats, "output_tokens"), count(stats, "cached"))
    if text(event, "status") != "error":
        return (Said(What.RESULT, at, usage=usage),)
    met = wall_in(text(table(event, "error"), "message"), at)
    result = Said(What.RESULT, at, text=met.text, usage=usage, failed=True)
    return (result,) if met.what is What.ERROR else (result, met)


def wall_in(said: str, at: float | None) -> Said:
    """Return an error as the wall it is, or as an error."""
    found = STATUS.search(said[:1000])
    status = float(found[1] or found[2]) if found else None
    met = wall("rate_limit" if QUOTA.search(said[:1000]) else "", status, said, at)
    return met if met.until is not None or met.what is not What.LIMIT else _until(met, said)


def _until(met: Said, said: str) -> Said:
    found = RESET.search(said[:1000])
    if found is None or not any(found.groups()):
        return met
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    until = later((hours * 3600 + minutes * 60 + seconds) * 1000.0, met.at)
    return Said(met.what, met.at, name=met.name, text=met.text, until=until)


STREAM: dict[str, Reader] = {
    "init": Voice(at="timestamp", conversation="session_id").says(What.STARTED, name="model"),
    "message": _message,
    "tool_use": LINE.says(What.TOOL_STARTED, name="tool_name", id="tool_id"),
    "tool_result": _tool_result,
    "error": _error,
    "result": _result,
}
