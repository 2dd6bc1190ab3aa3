"""The session files of Pi: what one line says, and where they lie (0.73)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from glob import escape

from vigil.agents.contract import Place
from vigil.agents.flags import folder, is_id
from vigil.agents.pi.stream import FAILED, usage_of, wall_in
from vigil.agents.shapes import Json, flag, moment, rows, table, text, word
from vigil.core.model.speech import Said, What

Entry = Callable[[Json, float | None], Iterable[Said]]


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a session file says."""
    at = moment(entry, "timestamp")
    kind = text(entry, "type")
    if kind == "session":
        return (Said(What.STARTED, at, conversation=word(entry, "id")),)
    if kind == "message":
        return _entry_message(table(entry, "message"), at)
    what = ENTRIES.get(kind)
    return (Said(What.UNKNOWN, at, name=word(entry, "type")),) if what is None else (Said(what, at),)


def _entry_message(message: Json, at: float | None) -> Iterable[Said]:
    role = text(message, "role")
    read = ROLES.get(role)
    return (Said(What.UNKNOWN, at, name=f"message/{word(message, 'role')}"),) if read is None else read(message, at)


def _user(_message: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.PROMPT, at),)


def _assistant(message: Json, at: float | None) -> Iterable[Said]:
    reason, usage = text(message, "stopReason"), usage_of(table(message, "usage"))
    name = word(message, "model")
    if reason == "toolUse":
        calls = [block for block in rows(message, "content") if text(block, "type") == "toolCall"]
        begun = (Said(What.TOOL_STARTED, at, name=word(call, "name"), id=word(call, "id")) for call in calls)
        return (Said(What.ALIVE, at, name=name, usage=usage), *begun)
    ended = Said(What.TURN_ENDED, at, name=name, usage=usage, failed=reason in FAILED)
    return (ended, wall_in(message)) if reason == "error" else (ended,)


def _tool_result(message: Json, at: float | None) -> Iterable[Said]:
    failed = flag(message, "isError")
    return (Said(What.TOOL_ENDED, at, name=word(message, "toolName"), id=word(message, "toolCallId"), failed=failed),)


def _aside(_message: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.ALIVE, at),)


ROLES: dict[str, Entry] = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _tool_result,
    "bashExecution": _aside,
    "custom": _aside,
    "hookMessage": _aside,
    "branchSummary": _aside,
    "compactionSummary": _aside,
}
ASIDE = "model_change thinking_level_change branch_summary custom custom_message label session_info"
ENTRIES: dict[str, What] = {**dict.fromkeys(ASIDE.split(), What.ALIVE), "compaction": What.COMPACTED}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's file lies: below the folder of its directory, or in the chosen one."""
    if not is_id(conversation):
        return ()
    chosen = folder(place, "PI_CODING_AGENT_SESSION_DIR", "") if place.env.get("PI_CODING_AGENT_SESSION_DIR") else ""
    if chosen:
        return (f"{escape(chosen)}/*_{conversation}.jsonl",)
    home = folder(place, "PI_CODING_AGENT_DIR", ".pi/agent")
    return (f"{escape(home)}/sessions/*/*_{conversation}.jsonl",) if home else ()
