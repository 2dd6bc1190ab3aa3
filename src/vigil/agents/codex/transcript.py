"""The rollout files of Codex: what one line says, and where they lie (0.166)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from glob import escape

from vigil.agents.codex.stream import usage_of, walls
from vigil.agents.contract import Place
from vigil.agents.flags import folder, is_id
from vigil.agents.shapes import Json, moment, number, table, text, word, words
from vigil.core.model.speech import Said, What

Entry = Callable[[Json, float | None], Iterable[Said]]


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a rollout file says."""
    at, payload = moment(entry, "timestamp"), table(entry, "payload")
    read = ENTRIES.get(text(entry, "type"))
    if read is None:
        return (Said(What.UNKNOWN, at, name=word(entry, "type")),)
    return read(payload, at)


def _meta(payload: Json, at: float | None) -> Iterable[Said]:
    subagent = word(payload, "id") if isinstance(payload.get("source"), dict) else ""  # another thread started this one
    return (Said(What.STARTED, at, conversation=word(payload, "id"), subagent=subagent),)


def _aside(_payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.ALIVE, at),)


def _model(payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.ALIVE, at, name=word(payload, "model")),)


def _compacted(_payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.COMPACTED, at),)


def _response_item(payload: Json, at: float | None) -> Iterable[Said]:
    what = CALLS.get(text(payload, "type"))
    if what is None:
        return (Said(What.UNKNOWN, at, name=f"response_item/{word(payload, 'type')}"),)
    if what in (What.ALIVE, What.SPEAKS):
        return (Said(what, at),)
    return (Said(what, at, name=word(payload, "name"), id=word(payload, "call_id")),)


def _event(payload: Json, at: float | None) -> Iterable[Said]:
    read = EVENTS.get(text(payload, "type"))
    if read is None:
        return (Said(What.UNKNOWN, at, name=f"event_msg/{word(payload, 'type')}"),)
    return read(payload, at)


def _task_started(_payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.TURN_STARTED, at),)


def _task_complete(payload: Json, at: float | None) -> Iterable[Said]:
    error = table(payload, "error")
    if not error:
        return (Said(What.TURN_ENDED, at),)
    said = text(error, "message")
    ended = Said(What.TURN_ENDED, at, text=words(said), failed=True)
    return (ended, *walls(said, at, _status(error), _kind(error)))


def _turn_aborted(payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.TURN_ENDED, at, text=word(payload, "reason"), failed=True),)


def _failed(payload: Json, at: float | None) -> Iterable[Said]:
    said = text(payload, "message")
    met = walls(said, at, _status(payload), _kind(payload))
    return met or (Said(What.ERROR, at, text=words(said)),)


def _status(error: Json) -> float | None:
    """Return the answer's status, from an object that Codex names after the error."""
    info = table(error, "codex_error_info")
    return next((number(table(info, key), "http_status_code") for key in info), None)


def _kind(error: Json) -> str:
    return KINDS.get(text(error, "codex_error_info"), "")


def _retries(payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.RETRIES, at, text=words(text(payload, "message"))),)


def _item(payload: Json, at: float | None) -> Iterable[Said]:
    what = What.PROMPT if text(table(payload, "item"), "type") == "UserMessage" else What.ALIVE
    return (Said(what, at, conversation=word(payload, "thread_id")),)


def _tokens(payload: Json, at: float | None) -> Iterable[Said]:
    total = table(table(payload, "info"), "total_token_usage")
    spent = Said(What.ALIVE, at, usage=usage_of(total) if total else None)
    limits = table(payload, "rate_limits")
    reached = word(limits, "rate_limit_reached_type")
    return (spent, Said(What.LIMIT, at, text=reached, until=_resets_at(limits))) if reached else (spent,)


def _resets_at(limits: Json) -> float | None:
    """Return when the last of the used-up limits ends."""
    used_up = [window for name in ("primary", "secondary") if (window := table(limits, name)) and _is_used_up(window)]
    return max((at for window in used_up if (at := moment(window, "resets_at")) is not None), default=None)


def _is_used_up(window: Json) -> bool:
    return (number(window, "used_percent") or 0.0) >= 100.0


KINDS = {"usage_limit_exceeded": "rate_limit", "unauthorized": "authentication_failed"}
CALLS: dict[str, What] = {
    "function_call": What.TOOL_STARTED,
    "custom_tool_call": What.TOOL_STARTED,
    "local_shell_call": What.TOOL_STARTED,
    "function_call_output": What.TOOL_ENDED,
    "custom_tool_call_output": What.TOOL_ENDED,
    "local_shell_call_output": What.TOOL_ENDED,
    "message": What.ALIVE,
    "reasoning": What.SPEAKS,
    "web_search_call": What.ALIVE,
    "ghost_snapshot": What.ALIVE,
    "compaction": What.ALIVE,
}
ASIDE = (
    "user_message agent_message agent_reasoning thread_settings_applied thread_rolled_back thread_goal_updated warning"
    " entered_review_mode exited_review_mode exec_command_end patch_apply_end mcp_tool_call_end web_search_end"
)
EVENTS: dict[str, Entry] = {
    **dict.fromkeys(ASIDE.split(), _aside),
    "task_started": _task_started,
    "task_complete": _task_complete,
    "turn_started": _task_started,
    "turn_complete": _task_complete,
    "turn_aborted": _turn_aborted,
    "error": _failed,
    "stream_error": _retries,
    "item_completed": _item,
    "token_count": _tokens,
    "context_compacted": _compacted,
}
ENTRIES: dict[str, Entry] = {
    "session_meta": _meta,
    "turn_context": _model,
    "response_item": _response_item,
    "event_msg": _event,
    "compacted": _compacted,
    "token_usage_record": _aside,  # repeats the usage, for Codex's own accounts
    "world_state": _aside,
}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's rollout files lie: one for each resume in another place."""
    home = folder(place, "CODEX_HOME", ".codex")
    if not home or not is_id(conversation):
        return ()
    return (f"{escape(home)}/sessions/*/*/*/rollout-*-{conversation}.jsonl",)
