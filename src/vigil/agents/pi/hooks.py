"""Our extension in Pi: what it reports, and what that says (0.73)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vigil.agents.pi.stream import FAILED, wall_in
from vigil.agents.shapes import Json, declared, event_name, flag, moment, word
from vigil.core.model.speech import Said, What

Reader = Callable[[Json], Iterable[Said]]
EVENTS = """
const TOLD = {
  session_start: (event) => ({ reason: event.reason }),
  session_shutdown: (event) => ({ reason: event.reason }),
  session_compact: () => ({}),
  input: (event) => ({ source: event.source }),
  agent_start: () => ({}),
  agent_end: (event) => {
    const last = (event.messages ?? []).findLast((message) => message.role === "assistant") ?? {}
    return { stopReason: last.stopReason, errorMessage: short(last.errorMessage) }
  },
  turn_start: () => ({}),
  tool_execution_start: (event) => ({ toolName: event.toolName, toolCallId: event.toolCallId }),
  tool_execution_end: (event) => ({ toolName: event.toolName, toolCallId: event.toolCallId, isError: event.isError }),
}

export default function (pi) {
  for (const [type, told] of Object.entries(TOLD)) {
    pi.on(type, (event, ctx) => {
      try {
        tell({ type, timestamp: Date.now(), session: ctx?.sessionManager?.getSessionId?.(), ...told(event) })
      } catch {}
    })
  }
}
"""


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload of our extension says."""
    plainly = declared(payload)
    if plainly is not None:
        return (plainly,)
    name = event_name(payload)
    read = HOOKS.get(name)
    return (_told(payload, What.UNKNOWN, name),) if read is None else read(payload)


def _told(payload: Json, what: What, name: str = "", id: str = "", why: str = "", failed: bool = False) -> Said:
    at, conversation = moment(payload, "timestamp"), word(payload, "session")
    return Said(what, at, name=name, id=id, text=why, conversation=conversation, failed=failed)


def _hook_started(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.STARTED, why=word(payload, "reason")),)


def _hook_shutdown(payload: Json) -> Iterable[Said]:
    reason = word(payload, "reason")
    return (_told(payload, What.ENDED if reason == "quit" else What.TURN_ENDED, why=reason),)


def _hook_input(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.PROMPT, why=word(payload, "source")),)


def _hook_agent_start(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.TURN_STARTED),)


def _hook_agent_end(payload: Json) -> Iterable[Said]:
    reason = word(payload, "stopReason")
    ended = _told(payload, What.TURN_ENDED, why=reason if reason in FAILED else "", failed=reason in FAILED)
    return (ended, wall_in(payload)) if reason == "error" else (ended,)


def _hook_thinks(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.THINKS),)


def _hook_tool_start(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.TOOL_STARTED, word(payload, "toolName"), word(payload, "toolCallId")),)


def _hook_tool_end(payload: Json) -> Iterable[Said]:
    failed = flag(payload, "isError")
    return (_told(payload, What.TOOL_ENDED, word(payload, "toolName"), word(payload, "toolCallId"), failed=failed),)


def _hook_compacted(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.COMPACTED),)


HOOKS: dict[str, Reader] = {
    "session_start": _hook_started,
    "session_shutdown": _hook_shutdown,
    "session_compact": _hook_compacted,
    "input": _hook_input,
    "agent_start": _hook_agent_start,
    "agent_end": _hook_agent_end,
    "turn_start": _hook_thinks,
    "tool_execution_start": _hook_tool_start,
    "tool_execution_end": _hook_tool_end,
}
