"""The hooks of Claude Code: what one payload says; other agents took over its names and fields.

A permission request lacks its tool call's id, so we name the question after the call: the end of the call answers it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from hashlib import blake2b

from vigil.agents.claude.stream import prompt_kind, tool_started
from vigil.agents.shapes import Json, flag, moment, rows, table, text, word
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, What

HOOK = Voice(at="timestamp", conversation="session_id", subagent="agent_id")
ALIVE = HOOK.says(What.ALIVE)
DAY_S = 86400.0
ELICITATION = "elicitation"  # an MCP server's question; its notifications have no id, so all share this one
OWN_PROMPTS = frozenset({"system", "loop_wakeup", "schedule_wakeup", "poll_event"})  # no user gave it these
SAME_PROCESS = frozenset({"clear", "resume"})  # the conversation ends, the agent does not
STARTS: dict[str, What] = {
    "startup": What.STARTED,
    "resume": What.STARTED,
    "clear": What.STARTED,  # the same process, another conversation
    "fork": What.STARTED,
    "compact": What.ALIVE,  # in the middle of a turn, or after it
}
NOTIFICATIONS: dict[str, What] = {
    "permission_prompt": What.ALIVE,  # its PermissionRequest came 6 s before, with an id that can be answered
    "worker_permission_prompt": What.ASKED,
    "elicitation_dialog": What.ASKED,
    "elicitation_url_dialog": What.ASKED,
    "elicitation_complete": What.ANSWERED,
    "elicitation_response": What.ANSWERED,
    "idle_prompt": What.TURN_ENDED,  # also after an interrupt, which no other hook reports
    # About other sessions, which its overview shows:
    "agent_needs_input": What.ALIVE,
    "agent_completed": What.ALIVE,
    "auth_success": What.ALIVE,
    "auth_storage_failure": What.ALIVE,
    "computer_use_enter": What.ALIVE,
    "computer_use_exit": What.ALIVE,
    "model_refusal_fallback": What.ALIVE,
    "plugin_notification": What.ALIVE,
    "push_notification": What.ALIVE,
    "quota_auto_resume_disabled": What.ALIVE,
    "quota_auto_resume_fired": What.ALIVE,
    "quota_auto_resume_stale": What.ALIVE,
}


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says."""
    return HOOK.read_hook(payload, EVENTS)


def _session_start(payload: Json) -> Iterable[Said]:
    source = word(payload, "source")
    what = STARTS.get(source)
    if what is None:
        return (HOOK.say(payload, What.STARTED, why=source), HOOK.say(payload, What.UNKNOWN, f"SessionStart/{source}"))
    return (HOOK.say(payload, what, word(payload, "model"), why=source),)


def _session_end(payload: Json) -> Iterable[Said]:
    reason = word(payload, "reason")
    return (HOOK.say(payload, What.TURN_ENDED if reason in SAME_PROCESS else What.ENDED, why=reason),)


def _prompt(payload: Json) -> Iterable[Said]:
    if text(payload, "source") in OWN_PROMPTS:
        return (HOOK.say(payload, What.TURN_STARTED),)
    return (HOOK.say(payload, prompt_kind(text(payload, "prompt"))),)


def _pre_tool(payload: Json) -> Iterable[Said]:
    at, subagent, conversation = moment(payload, "timestamp"), word(payload, "agent_id"), word(payload, "session_id")
    name, call = word(payload, "tool_name"), word(payload, "tool_use_id")
    return tool_started(name, call, table(payload, "tool_input"), at, subagent, conversation)


def _permission(payload: Json) -> Iterable[Said]:
    name = word(payload, "tool_name") or "a permission"
    return (HOOK.say(payload, What.ASKED, name, word(payload, "tool_use_id") or _question(payload)),)


def _question(payload: Json) -> str:
    """Return an id for a tool call without one: the same before and after it runs."""
    try:
        given = json.dumps(payload.get("tool_input"), sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError):
        given = b""
    return f"{word(payload, 'tool_name')}:{blake2b(given, digest_size=6).hexdigest()}"


def _post_tool_failure(payload: Json) -> Iterable[Said]:
    return _tool_over(payload, failed=True, why="interrupted" if flag(payload, "is_interrupt") else "")


def _tool_over(payload: Json, failed: bool, why: str = "") -> Iterable[Said]:
    name, call = word(payload, "tool_name"), word(payload, "tool_use_id")
    answered = HOOK.say(payload, What.ANSWERED, name, _question(payload), why)
    return (answered, HOOK.say(payload, What.TOOL_ENDED, name, call, why, failed))


def _batch(payload: Json) -> Iterable[Said]:
    """Return the end of all calls of a message, also of denied ones, which nothing else reports."""
    common: Json = {key: payload[key] for key in ("session_id", "agent_id", "timestamp") if key in payload}
    over = [said for call in rows(payload, "tool_calls") for said in _tool_over({**call, **common}, failed=False)]
    return over or ALIVE(payload)


def _notification(payload: Json) -> Iterable[Said]:
    kind = word(payload, "notification_type")
    what = NOTIFICATIONS.get(kind)
    if what is None:
        return (HOOK.say(payload, What.UNKNOWN, f"Notification/{kind}"),)
    return (HOOK.say(payload, what, id=ELICITATION if kind.startswith(ELICITATION) else "", why=kind),)


def _elicitation(payload: Json) -> Iterable[Said]:
    return (HOOK.say(payload, What.ASKED, word(payload, "mcp_server_name"), ELICITATION),)


def _elicitation_result(payload: Json) -> Iterable[Said]:
    return (HOOK.say(payload, What.ANSWERED, word(payload, "mcp_server_name"), ELICITATION, word(payload, "action")),)


def _stop(payload: Json) -> Iterable[Said]:
    running = len(rows(payload, "background_tasks"))
    ended = HOOK.say(payload, What.TURN_ENDED, why=f"{running} go on in the background" if running else "")
    wakes = [at for cron in rows(payload, "session_crons") if (at := _wakes_at(cron)) is not None]
    if not wakes:
        return (ended,)
    return (ended, Said(What.WAITS, text="wakes itself", until=min(wakes), conversation=ended.conversation))


def _wakes_at(cron: Json) -> float | None:
    """Return when a one-time task runs next; its schedule names minute, hour, day and month."""
    try:
        minute, hour, day, month, _ = text(cron, "schedule").split()
        now = time.time()
        moments = (datetime(datetime.now().year + i, int(month), int(day), int(hour), int(minute)) for i in (0, 1))
        return None if flag(cron, "recurring") else next(at for it in moments if (at := it.timestamp()) > now - DAY_S)
    except (ValueError, OverflowError, StopIteration):
        return None


def _stop_failure(payload: Json) -> Iterable[Said]:
    said = text(payload, "last_assistant_message") or text(payload, "error_details")
    ended_by = wall(word(payload, "error"), None, said, moment(payload, "timestamp"), word(payload, "agent_id"))
    return (HOOK.say(payload, What.TURN_ENDED, why=word(payload, "error"), failed=True), ended_by)


def _pre_compact(payload: Json) -> Iterable[Said]:
    manual = payload.get("trigger") == "manual"  # a user asked for it between two turns: a turn of its own
    return (HOOK.say(payload, What.TURN_STARTED if manual else What.ALIVE, why="compacts"),)


def _post_compact(payload: Json) -> Iterable[Said]:
    trigger = word(payload, "trigger")
    compacted = HOOK.say(payload, What.COMPACTED, why=trigger)
    return (compacted, HOOK.say(payload, What.TURN_ENDED)) if trigger == "manual" else (compacted,)


ASIDE = (
    "Setup UserPromptExpansion MessageDisplay TeammateIdle TaskCreated TaskCompleted ConfigChange"
    " InstructionsLoaded WorktreeCreate WorktreeRemove CwdChanged FileChanged DirectoryAdded PreModelSwitch PostModelSwitch"
)
EVENTS: dict[str, Reader] = dict.fromkeys(ASIDE.split(), ALIVE) | {
    "SessionStart": _session_start,
    "SessionEnd": _session_end,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _pre_tool,
    "PermissionRequest": _permission,
    "PermissionDenied": partial(_tool_over, failed=True, why="denied"),
    "PostToolUse": partial(_tool_over, failed=False),
    "PostToolUseFailure": _post_tool_failure,
    "PostToolBatch": _batch,
    "Notification": _notification,
    "Elicitation": _elicitation,
    "ElicitationResult": _elicitation_result,
    "Stop": _stop,
    "StopFailure": _stop_failure,
    "SubagentStart": HOOK.says(What.SUBAGENT_STARTED, name="agent_type", id="agent_id"),
    "SubagentStop": HOOK.says(What.SUBAGENT_ENDED, name="agent_type", id="agent_id"),
    "PreCompact": _pre_compact,
    "PostCompact": _post_compact,
}
