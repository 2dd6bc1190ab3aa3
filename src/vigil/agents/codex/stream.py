"""The stream of Codex: what one line of `exec --json` says (0.166).

It reports usage for the whole conversation, also after a resume. An item of type error is only a warning;
an error that says "Reconnecting" is a retry."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vigil.agents.shapes import Json, count, moment, table, text, word, words
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

LINE = Voice()
RETRIES = re.compile(r"Reconnecting\.\.\.|Reconnecting…")
STATUS = re.compile(r"\bstatus:? (\d{3})\b")
FAILED = frozenset({"failed", "declined", "errored"})


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `exec --json` says."""
    return LINE.read(event, STREAM)


def _turn_completed(event: Json) -> Iterable[Said]:
    return (Said(What.RESULT, usage=usage_of(table(event, "usage"))),)


def usage_of(tokens: Json) -> Usage:
    """Return what the whole conversation used."""
    return Usage(
        count(tokens, "input_tokens"), count(tokens, "output_tokens"), count(tokens, "cached_input_tokens"), so_far=True
    )


def _turn_failed(event: Json) -> Iterable[Said]:
    said = text(table(event, "error"), "message")
    return (Said(What.RESULT, text=words(said), failed=True), *walls(said, moment(event, "timestamp")))


def _error(event: Json) -> Iterable[Said]:
    said = text(event, "message")
    if RETRIES.match(said):
        return (Said(What.RETRIES, text=words(said)),)
    return walls(said, moment(event, "timestamp")) or (Said(What.ERROR, text=words(said)),)


def walls(said: str, at: float | None, status: float | None = None, kind: str = "") -> tuple[Said, ...]:
    """Return the wall that an error is; empty if it is only an error."""
    found = STATUS.search(said[:1000])
    met = wall(kind, status or (float(found[1]) if found else None), said, at)
    return () if met.what is What.ERROR else (met,)


def _item(event: Json) -> Iterable[Said]:
    """Return what the start or the end of an item says: of a tool, which of the two it is."""
    item, ended = table(event, "item"), event["type"] == "item.completed"
    if text(item, "type") not in TOOLS:
        return LINE.read(item, ITEMS, within="item/")
    name, failed = word(item, "tool") or word(item, "type"), text(item, "status") in FAILED
    return (Said(What.TOOL_ENDED if ended else What.TOOL_STARTED, name=name, id=word(item, "id"), failed=failed),)


def _warning(item: Json) -> Iterable[Said]:
    return (Said(What.ALIVE, name="warning", text=words(text(item, "message"))),)


TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})
ITEMS: dict[str, Reader] = {
    "agent_message": LINE.says(What.SPEAKS),
    "reasoning": LINE.says(What.SPEAKS),
    "todo_list": LINE.says(What.SPEAKS),
    "error": _warning,
}
STREAM: dict[str, Reader] = {
    "thread.started": Voice(conversation="thread_id").says(What.STARTED),
    "turn.started": LINE.says(What.TURN_STARTED),
    "turn.completed": _turn_completed,
    "turn.failed": _turn_failed,
    "item.started": _item,
    "item.updated": LINE.says(What.ALIVE),
    "item.completed": _item,
    "error": _error,
}
