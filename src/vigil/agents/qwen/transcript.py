"""Qwen Code: what its transcripts say (0.15.10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from glob import escape

from vigil.agents.claude.adapter import project_of
from vigil.agents.claude.stream import ALIVE
from vigil.agents.contract import Place
from vigil.agents.flags import folder, is_id
from vigil.agents.shapes import Json, count, moment, number, rows, table, text, word
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, Usage, What

LINE = Voice()


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a transcript says."""
    at, subagent = moment(entry, "timestamp"), word(entry, "agentId")
    return [replace(one, at=at, subagent=subagent) for one in LINE.read(entry, ENTRIES)]


def _answer(entry: Json) -> Iterable[Said]:
    """Return the tools a message calls, or the end of the turn: Qwen writes each message whole."""
    usage = table(entry, "usageMetadata")
    used = Usage(
        count(usage, "promptTokenCount"),
        count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount"),
        count(usage, "cachedContentTokenCount"),
    )
    calls = [table(part, "functionCall") for part in rows(table(entry, "message"), "parts") if "functionCall" in part]
    started = [Said(What.TOOL_STARTED, name=word(call, "name"), id=word(call, "id")) for call in calls]
    first, *rest = started or [Said(What.TURN_ENDED)]
    return (replace(first, usage=used), *rest)


def _tool_result(entry: Json) -> Iterable[Said]:
    result = table(entry, "toolCallResult")
    answers = [table(part, "functionResponse") for part in rows(table(entry, "message"), "parts")]
    name = next((word(answer, "name") for answer in answers), "")
    return (Said(What.TOOL_ENDED, name=name, id=word(result, "callId"), failed=result.get("status") != "success"),)


def _entry_system(entry: Json) -> Iterable[Said]:
    subtype = text(entry, "subtype")
    if subtype == "ui_telemetry":
        return _telemetry(table(table(entry, "systemPayload"), "uiEvent"))
    what = ENTRY_SUBTYPES.get(subtype, What.UNKNOWN)
    return (Said(what, name=f"system/{word(entry, 'subtype')}" if what is What.UNKNOWN else ""),)


def _telemetry(told: Json) -> Iterable[Said]:
    """Return the retry after an API error, which shows only here."""
    if told.get("event.name") != "qwen-code.api_error":
        return ALIVE
    status = number(told, "status_code")
    why = f"status {status:.0f}" if status else "no answer"
    return (Said(What.RETRIES, name=word(told, "error_type"), text=why),)


ENTRY_SUBTYPES: dict[str, What] = {
    "chat_compression": What.COMPACTED,
    "at_command": What.ALIVE,
    "attribution_snapshot": What.ALIVE,
    "custom_title": What.ALIVE,
    "rewind": What.ALIVE,
    "slash_command": What.ALIVE,
}
ENTRIES: dict[str, Reader] = {
    "user": LINE.says(What.PROMPT),
    "assistant": _answer,
    "tool_result": _tool_result,
    "system": _entry_system,
}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's files lie: its own, then its sub-agents'."""
    home = folder(place, "QWEN_RUNTIME_DIR", "") if place.env.get("QWEN_RUNTIME_DIR") else folder(place, "QWEN_HOME", ".qwen")
    if not home or not is_id(conversation):
        return ()
    project = f"{escape(home)}/projects/{project_of(place.cwd)}"
    return (f"{project}/chats/{conversation}.jsonl", f"{project}/subagents/{conversation}/agent-*.jsonl")
