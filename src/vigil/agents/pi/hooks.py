"""Our extension in Pi: what it reports, and what that says (0.73)."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.agents.pi.stream import FAILED, wall_in
from vigil.agents.shapes import Json, word
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, What

HOOK = Voice(at="timestamp", conversation="session")
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
    return HOOK.read_hook(payload, HOOKS)


def _shutdown(payload: Json) -> Iterable[Said]:
    reason = word(payload, "reason")
    return (HOOK.say(payload, What.ENDED if reason == "quit" else What.TURN_ENDED, why=reason),)


def _agent_end(payload: Json) -> Iterable[Said]:
    reason = word(payload, "stopReason")
    ended = HOOK.say(payload, What.TURN_ENDED, why=reason if reason in FAILED else "", failed=reason in FAILED)
    return (ended, wall_in(payload)) if reason == "error" else (ended,)


HOOKS: dict[str, Reader] = {
    "session_start": HOOK.says(What.STARTED, why="reason"),
    "session_shutdown": _shutdown,
    "session_compact": HOOK.says(What.COMPACTED),
    "input": HOOK.says(What.PROMPT, why="source"),
    "agent_start": HOOK.says(What.TURN_STARTED),
    "agent_end": _agent_end,
    "turn_start": HOOK.says(What.THINKS),
    "tool_execution_start": HOOK.says(What.TOOL_STARTED, name="toolName", id="toolCallId"),
    "tool_execution_end": HOOK.says(What.TOOL_ENDED, name="toolName", id="toolCallId", failed="isError"),
}
