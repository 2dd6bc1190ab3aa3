"""The chat files of Gemini CLI: what one line says, and where they lie (0.61).

Gemini reports a tool when it is over, with its message again. No line ends a turn, and most users have no hooks
that do: so an answer in words ends it, and a tool that follows opens it again."""

from __future__ import annotations

from collections.abc import Iterable
from glob import escape

from vigil.agents.contract import Place
from vigil.agents.flags import folder, is_id
from vigil.agents.gemini.stream import wall_in
from vigil.agents.shapes import Json, count, moment, rows, table, text, word
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, Usage, What

LINE = Voice(at="timestamp")


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a chat file says; a line without a type describes the file."""
    of_file = not text(entry, "type") and entry.keys() & {"sessionId", "$set", "$rewindTo"}
    return _of_file(entry) if of_file else LINE.read(entry, ENTRIES)


def _of_file(entry: Json) -> Iterable[Said]:
    conversation = word(entry, "sessionId")
    if not conversation:
        return (Said(What.ALIVE, moment(table(entry, "$set"), "lastUpdated")),)
    subagent = conversation if text(entry, "kind") == "subagent" else ""
    return (Said(What.STARTED, moment(entry, "startTime"), conversation=conversation, subagent=subagent),)


def _user(entry: Json) -> Iterable[Said]:
    own = any("functionResponse" in part for part in rows(entry, "content"))  # a tool's result
    return (LINE.say(entry, What.ALIVE if own else What.PROMPT),)


def _gemini(entry: Json) -> Iterable[Said]:
    at, name = moment(entry, "timestamp"), word(entry, "model")
    calls = rows(entry, "toolCalls")
    if not calls:
        what = What.TURN_ENDED if text(entry, "content").strip() else What.ALIVE
        return (Said(what, at, name=name, usage=_tokens(table(entry, "tokens"))),)
    # The same message again, with its tools' results: the first time told what it used.
    return [said for call in calls for said in _call(call)]


def _call(call: Json) -> Iterable[Said]:
    at, name, id = moment(call, "timestamp"), word(call, "name"), word(call, "id")
    failed = text(call, "status") in ("error", "cancelled")
    return (Said(What.TOOL_STARTED, at, name=name, id=id), Said(What.TOOL_ENDED, at, name=name, id=id, failed=failed))


def _tokens(tokens: Json) -> Usage | None:
    if not tokens:
        return None
    return Usage(count(tokens, "input"), count(tokens, "output") + count(tokens, "thoughts"), count(tokens, "cached"))


def _failed(entry: Json) -> Iterable[Said]:
    said = text(entry, "content") or next((text(part, "text") for part in rows(entry, "content")), "")
    return (wall_in(said, moment(entry, "timestamp")),)


ENTRIES: dict[str, Reader] = {
    "user": _user,
    "gemini": _gemini,
    "info": LINE.says(What.ALIVE),
    "warning": LINE.says(What.ALIVE),
    "error": _failed,
}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's chat files lie: its own, then its sub-agents'."""
    home = folder(place, "GEMINI_CLI_HOME", "")
    if not home or not is_id(conversation):
        return ()
    chats = f"{escape(home)}/.gemini/tmp/*/chats"
    return (f"{chats}/session-*-{conversation[:8]}.jsonl", f"{chats}/{conversation}/*.jsonl")
