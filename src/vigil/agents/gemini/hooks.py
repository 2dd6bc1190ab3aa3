"""The hooks of Gemini CLI: what one payload says (0.61). Tools have no id: an end closes the newest."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.agents.shapes import Json, table, word
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, What

HOOK = Voice(at="timestamp", conversation="session_id")
PERMISSION = "ToolPermission"  # its only kind of notification


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says."""
    return HOOK.read_hook(payload, HOOKS)


def _thinks(payload: Json) -> Iterable[Said]:
    return (HOOK.say(payload, What.THINKS, word(table(payload, "llm_request"), "model")),)


def _after_tool(payload: Json) -> Iterable[Said]:
    failed = bool(table(payload, "tool_response").get("error"))
    return (HOOK.say(payload, What.TOOL_ENDED, word(payload, "tool_name"), failed=failed),)


def _notification(payload: Json) -> Iterable[Said]:
    kind = word(payload, "notification_type")
    if kind != PERMISSION:
        return (HOOK.say(payload, What.UNKNOWN, f"Notification/{kind}"),)
    details = table(payload, "details")
    return (HOOK.say(payload, What.ASKED, word(details, "toolName") or word(details, "type")),)


def _session_end(payload: Json) -> Iterable[Said]:
    reason = word(payload, "reason")
    return (HOOK.say(payload, What.TURN_ENDED if reason == "clear" else What.ENDED, why=reason),)


HOOKS: dict[str, Reader] = {
    "SessionStart": HOOK.says(What.STARTED, why="source"),
    "BeforeAgent": HOOK.says(What.PROMPT),
    "BeforeModel": _thinks,
    "BeforeToolSelection": _thinks,
    "AfterModel": HOOK.says(What.ALIVE),  # one for each piece of an answer: we never ask for it
    "BeforeTool": HOOK.says(What.TOOL_STARTED, name="tool_name"),
    "AfterTool": _after_tool,
    "Notification": _notification,
    "PreCompress": HOOK.says(What.ALIVE),  # before each turn, also when it compresses nothing
    "AfterAgent": HOOK.says(What.TURN_ENDED),
    "SessionEnd": _session_end,
}
