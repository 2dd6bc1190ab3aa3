"""The stream of Codex: what one line of `exec --json` says (0.166).

It reports usage for the whole conversation, also after a resume. An item of type error is only a warning;
an error that says "Reconnecting" is a retry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from vigil.agents.shapes import Json, count, moment, table, text, word, words
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

Reader = Callable[[Json], Iterable[Said]]
ALIVE = (Said(What.ALIVE),)
RETRIES = re.compile(r"Reconnecting\.\.\.|Reconnecting…")
STATUS = re.compile(r"\bstatus:? (\d{3})\b")
FAILED = frozenset({"failed", "declined", "errored"})


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `exec --json` says."""
    return STREAM.get(text(event, "type"), _unknown)(event)


def _unknown(event: Json) -> Iterable[Said]:
    return (Said(What.UNKNOWN, name=word(event, "type")),)


def _alive(_event: Json) -> Iterable[Said]:
    return ALIVE


def _thread_started(event: Json) -> Iterable[Said]:
    return (Said(What.STARTED, conversation=word(event, "thread_id")),)


def _turn_started(_event: Json) -> Iterable[Said]:
    return (Said(What.TURN_STARTED),)


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


def _item_started(event: Json) -> Iterable[Said]:
    item = table(event, "item")
    return ITEMS.get(text(item, "type"), _unknown_item)(item, What.TOOL_STARTED)


def _item_completed(event: Json) -> Iterable[Said]:
    item = table(event, "item")
    return ITEMS.get(text(item, "type"), _unknown_item)(item, What.TOOL_ENDED)


def _unknown_item(item: Json, _what: What) -> Iterable[Said]:
    return (Said(What.UNKNOWN, name=f"item/{word(item, 'type')}"),)


def _tool(item: Json, what: What) -> Iterable[Said]:
    name = word(item, "tool") or word(item, "type")
    return (Said(what, name=name, id=word(item, "id"), failed=text(item, "status") in FAILED),)


def _speaks(_item: Json, _what: What) -> Iterable[Said]:
    return (Said(What.SPEAKS),)


def _warning(item: Json, _what: What) -> Iterable[Said]:
    return (Said(What.ALIVE, name="warning", text=words(text(item, "message"))),)


ITEMS: dict[str, Callable[[Json, What], Iterable[Said]]] = {
    "command_execution": _tool,
    "file_change": _tool,
    "mcp_tool_call": _tool,
    "web_search": _tool,
    "collab_tool_call": _tool,
    "agent_message": _speaks,
    "reasoning": _speaks,
    "todo_list": _speaks,
    "error": _warning,
}
STREAM: dict[str, Reader] = {
    "thread.started": _thread_started,
    "turn.started": _turn_started,
    "turn.completed": _turn_completed,
    "turn.failed": _turn_failed,
    "item.started": _item_started,
    "item.updated": _alive,
    "item.completed": _item_completed,
    "error": _error,
}
