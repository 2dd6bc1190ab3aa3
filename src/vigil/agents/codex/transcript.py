"""The rollout files of Codex: what one line says, and where they lie (0.166)."""

from __future__ import annotations

from collections.abc import Iterable
from glob import escape

from vigil.agents.codex.stream import usage_of, walls
from vigil.agents.contract import Place
from vigil.agents.flags import folder, is_id
from vigil.agents.shapes import Json, moment, number, table, text, word, words
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, What

LINE = Voice(at="timestamp")
ALIVE = LINE.says(What.ALIVE)


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a rollout file says."""
    return LINE.read(entry, ENTRIES)


def _payload(entry: Json) -> Json:
    """Return a line's payload, with the line's moment."""
    return {**table(entry, "payload"), "timestamp": entry.get("timestamp")}


def _meta(entry: Json) -> Iterable[Said]:
    payload = table(entry, "payload")
    subagent = word(payload, "id") if isinstance(payload.get("source"), dict) else ""  # another thread started this one
    return (Said(What.STARTED, moment(entry, "timestamp"), conversation=word(payload, "id"), subagent=subagent),)


def _model(entry: Json) -> Iterable[Said]:
    return (LINE.say(entry, What.ALIVE, word(table(entry, "payload"), "model")),)


def _response_item(entry: Json) -> Iterable[Said]:
    return LINE.read(_payload(entry), CALLS, within="response_item/")


def _event(entry: Json) -> Iterable[Said]:
    return LINE.read(_payload(entry), EVENTS, within="event_msg/")


def _task_complete(payload: Json) -> Iterable[Said]:
    at, error = moment(payload, "timestamp"), table(payload, "error")
    if not error:
        return (Said(What.TURN_ENDED, at),)
    said = text(error, "message")
    ended = Said(What.TURN_ENDED, at, text=words(said), failed=True)
    return (ended, *walls(said, at, _status(error), _kind(error)))


def _turn_aborted(payload: Json) -> Iterable[Said]:
    return (LINE.say(payload, What.TURN_ENDED, why=word(payload, "reason"), failed=True),)


def _failed(payload: Json) -> Iterable[Said]:
    at, said = moment(payload, "timestamp"), text(payload, "message")
    met = walls(said, at, _status(payload), _kind(payload))
    return met or (Said(What.ERROR, at, text=words(said)),)


def _status(error: Json) -> float | None:
    """Return the answer's status, from an object that Codex names after the error."""
    info = table(error, "codex_error_info")
    return next((number(table(info, key), "http_status_code") for key in info), None)


def _kind(error: Json) -> str:
    return KINDS.get(text(error, "codex_error_info"), "")


def _retries(payload: Json) -> Iterable[Said]:
    return (LINE.say(payload, What.RETRIES, why=words(text(payload, "message"))),)


def _item(payload: Json) -> Iterable[Said]:
    what = What.PROMPT if text(table(payload, "item"), "type") == "UserMessage" else What.ALIVE
    return (Voice(at="timestamp", conversation="thread_id").say(payload, what),)


def _tokens(payload: Json) -> Iterable[Said]:
    at, total = moment(payload, "timestamp"), table(table(payload, "info"), "total_token_usage")
    spent = Said(What.ALIVE, at, usage=usage_of(total) if total else None)
    limits = table(payload, "rate_limits")
    reached = word(limits, "rate_limit_reached_type")
    return (spent, Said(What.LIMIT, at, text=reached, until=_resets_at(limits))) if reached else (spent,)


def _resets_at(limits: Json) -> float | None:
    """Return when the last of the used-up limits ends."""
    windows = (table(limits, "primary"), table(limits, "secondary"))
    used_up = [window for window in windows if (number(window, "used_percent") or 0.0) >= 100.0]
    return max((at for window in used_up if (at := moment(window, "resets_at")) is not None), default=None)


KINDS = {"usage_limit_exceeded": "rate_limit", "unauthorized": "authentication_failed"}
STARTED = LINE.says(What.TOOL_STARTED, name="name", id="call_id")
ENDED = LINE.says(What.TOOL_ENDED, name="name", id="call_id")
CALLS: dict[str, Reader] = {
    "function_call": STARTED,
    "custom_tool_call": STARTED,
    "local_shell_call": STARTED,
    "function_call_output": ENDED,
    "custom_tool_call_output": ENDED,
    "local_shell_call_output": ENDED,
    "message": ALIVE,
    "reasoning": LINE.says(What.SPEAKS),
    "web_search_call": ALIVE,
    "ghost_snapshot": ALIVE,
    "compaction": ALIVE,
}
ASIDE = (
    "user_message agent_message agent_reasoning thread_settings_applied thread_rolled_back thread_goal_updated warning"
    " entered_review_mode exited_review_mode exec_command_end patch_apply_end mcp_tool_call_end web_search_end"
)
EVENTS: dict[str, Reader] = dict.fromkeys(ASIDE.split(), ALIVE) | {
    "task_started": LINE.says(What.TURN_STARTED),
    "task_complete": _task_complete,
    "turn_started": LINE.says(What.TURN_STARTED),
    "turn_complete": _task_complete,
    "turn_aborted": _turn_aborted,
    "error": _failed,
    "stream_error": _retries,
    "item_completed": _item,
    "token_count": _tokens,
    "context_compacted": LINE.says(What.COMPACTED),
}
ENTRIES: dict[str, Reader] = {
    "session_meta": _meta,
    "turn_context": _model,
    "response_item": _response_item,
    "event_msg": _event,
    "compacted": LINE.says(What.COMPACTED),
    "token_usage_record": ALIVE,  # repeats the usage, for Codex's own accounts
    "world_state": ALIVE,
}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's rollout files lie: one for each resume in another place."""
    home = folder(place, "CODEX_HOME", ".codex")
    if not home or not is_id(conversation):
        return ()
    return (f"{escape(home)}/sessions/*/*/*/rollout-*-{conversation}.jsonl",)
