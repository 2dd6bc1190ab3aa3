"""The hooks of Gemini CLI: what one payload says (0.61). Tools have no id: an end closes the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vigil.agents.shapes import Json, declared, event_name, moment, table, word
from vigil.core.model.speech import Said, What

Reader = Callable[[Json], Iterable[Said]]
PERMISSION = "ToolPermission"  # its only kind of notification


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says."""
    plainly = declared(payload)
    if plainly is not None:
        return (plainly,)
    name = event_name(payload)
    read = HOOKS.get(name)
    return (_say(payload, What.UNKNOWN, name),) if read is None else read(payload)


def _say(payload: Json, what: What, name: str = "", why: str = "", failed: bool = False) -> Said:
    at, conversation = moment(payload, "timestamp"), word(payload, "session_id")
    return Said(what, at, name=name, text=why, conversation=conversation, failed=failed)


def _session_start(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.STARTED, why=word(payload, "source")),)


def _before_agent(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.PROMPT),)


def _thinks(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.THINKS, word(table(payload, "llm_request"), "model")),)


def _alive(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.ALIVE),)


def _before_tool(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.TOOL_STARTED, word(payload, "tool_name")),)


def _after_tool(payload: Json) -> Iterable[Said]:
    failed = bool(table(payload, "tool_response").get("error"))
    return (_say(payload, What.TOOL_ENDED, word(payload, "tool_name"), failed=failed),)


def _notification(payload: Json) -> Iterable[Said]:
    kind = word(payload, "notification_type")
    if kind != PERMISSION:
        return (_say(payload, What.UNKNOWN, f"Notification/{kind}"),)
    details = table(payload, "details")
    return (_say(payload, What.ASKED, word(details, "toolName") or word(details, "type")),)


def _after_agent(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.TURN_ENDED),)


def _session_end(payload: Json) -> Iterable[Said]:
    reason = word(payload, "reason")
    return (_say(payload, What.TURN_ENDED if reason == "clear" else What.ENDED, why=reason),)


HOOKS: dict[str, Reader] = {
    "SessionStart": _session_start,
    "BeforeAgent": _before_agent,
    "BeforeModel": _thinks,
    "BeforeToolSelection": _thinks,
    "AfterModel": _alive,  # one for each piece of an answer: we never ask for it
    "BeforeTool": _before_tool,
    "AfterTool": _after_tool,
    "Notification": _notification,
    "PreCompress": _alive,  # before each turn, also when it compresses nothing
    "AfterAgent": _after_agent,
    "SessionEnd": _session_end,
}
