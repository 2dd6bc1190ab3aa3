"""The session files of Pi: what one line says, and where they lie (0.73)."""

from __future__ import annotations

from collections.abc import Iterable
from glob import escape

from vigil.agents.contract import Place
from vigil.agents.flags import folder, is_id
from vigil.agents.pi.stream import FAILED, usage_of, wall_in
from vigil.agents.shapes import Json, moment, rows, table, text, word
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, What

LINE = Voice(at="timestamp")
MESSAGE = Voice(at="line_at")


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a session file says."""
    return LINE.read(entry, ENTRIES)


def _message(entry: Json) -> Iterable[Said]:
    """Return what a message says, at its line's moment."""
    message = {**table(entry, "message"), "line_at": entry.get("timestamp")}
    return MESSAGE.read(message, ROLES, "role", within="message/")


def _assistant(message: Json) -> Iterable[Said]:
    reason, usage = text(message, "stopReason"), usage_of(table(message, "usage"))
    at, name = moment(message, MESSAGE.at), word(message, "model")
    if reason == "toolUse":
        calls = [block for block in rows(message, "content") if text(block, "type") == "toolCall"]
        begun = (Said(What.TOOL_STARTED, at, name=word(call, "name"), id=word(call, "id")) for call in calls)
        return (Said(What.ALIVE, at, name=name, usage=usage), *begun)
    ended = Said(What.TURN_ENDED, at, name=name, usage=usage, failed=reason in FAILED)
    return (ended, wall_in(message)) if reason == "error" else (ended,)


ASIDE_ROLES = "bashExecution custom hookMessage branchSummary compactionSummary"
ROLES: dict[str, Reader] = dict.fromkeys(ASIDE_ROLES.split(), MESSAGE.says(What.ALIVE)) | {
    "user": MESSAGE.says(What.PROMPT),
    "assistant": _assistant,
    "toolResult": MESSAGE.says(What.TOOL_ENDED, name="toolName", id="toolCallId", failed="isError"),
}
ASIDE = "model_change thinking_level_change branch_summary custom custom_message label session_info"
ENTRIES: dict[str, Reader] = dict.fromkeys(ASIDE.split(), LINE.says(What.ALIVE)) | {
    "session": Voice(at="timestamp", conversation="id").says(What.STARTED),
    "message": _message,
    "compaction": LINE.says(What.COMPACTED),
}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's file lies: below the folder of its directory, or in the chosen one."""
    if not is_id(conversation):
        return ()
    chosen = folder(place, "PI_CODING_AGENT_SESSION_DIR", "") if place.env.get("PI_CODING_AGENT_SESSION_DIR") else ""
    if chosen:
        return (f"{escape(chosen)}/*_{conversation}.jsonl",)
    home = folder(place, "PI_CODING_AGENT_DIR", ".pi/agent")
    return (f"{escape(home)}/sessions/*/*_{conversation}.jsonl",) if home else ()
