"""Our plugin in OpenCode: what it tells, and what that says (1.18)."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.agents.opencode.stream import usage_of, wall_in
from vigil.agents.shapes import Json, moment, table, text, word, words
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, What

HOOK = Voice(at="timestamp", conversation="own", subagent="other")
EVENTS = """
const parents = new Map()
const last = new Map()

function isNew(key, value) {
  if (last.get(key) === value) return false
  last.delete(key)
  last.set(key, value)
  if (last.size > 500) last.delete(last.keys().next().value)
  return true
}

function part(said, found) {
  if (found.type === "tool") {
    const status = found.state?.status
    if (status === "pending" || !isNew(found.callID, status)) return
    return { ...said, tool: found.tool, callID: found.callID, status }
  }
  if (USAGE && found.type === "step-finish") return { ...said, tokens: found.tokens, cost: found.cost }
}

const TOLD = {
  "session.created": (said, p) => {
    if (p.info?.parentID) parents.set(p.info.id, p.info.parentID)
    return { ...said, parentID: p.info?.parentID }
  },
  "session.status": (said, p) => {
    const { type, attempt, message, next } = p.status ?? {}
    if (!isNew(`status ${said.sessionID}`, `${type} ${attempt}`)) return
    return { ...said, status: type, message: short(message), next }
  },
  "session.error": (said, p) => ({
    ...said,
    error: { name: p.error?.name, data: { statusCode: p.error?.data?.statusCode, message: short(p.error?.data?.message) } },
  }),
  "session.compacted": (said) => said,
  "message.updated": (said, p) => {
    if (p.info?.role === "user" && isNew(`user ${p.info.id}`, true)) return { ...said, role: "user" }
  },
  "message.part.updated": (said, p) => part(said, p.part ?? {}),
  "permission.asked": (said, p) => ({ ...said, id: p.id, permission: short(p.permission) }),
  "permission.replied": (said, p) => ({ ...said, id: p.requestID, reply: short(p.reply) }),
  "question.asked": (said, p) => ({ ...said, id: p.id }),
  "question.replied": (said, p) => ({ ...said, id: p.requestID }),
  "question.rejected": (said, p) => ({ ...said, id: p.requestID }),
}

export const Vigil = async () => {
  tell({ type: "plugin.loaded" })
  return {
    event: async ({ event }) => {
      const p = event?.properties ?? {}
      const sessionID = p.sessionID ?? p.info?.sessionID ?? p.info?.id ?? p.part?.sessionID
      const known = { type: event?.type, timestamp: Date.now(), sessionID, parentID: parents.get(sessionID) }
      const said = TOLD[event?.type]?.(known, p)
      if (said) tell(said)
    },
  }
}
"""


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload of our plugin says."""
    whose = "other" if text(payload, "parentID") else "own"
    return HOOK.read_hook({**payload, "own": "", "other": "", whose: payload.get("sessionID")}, HOOKS)


def _created(payload: Json) -> Iterable[Said]:
    if text(payload, "parentID"):
        return (HOOK.say(payload, What.SUBAGENT_STARTED, id=word(payload, "sessionID")),)
    return (HOOK.say(payload, What.STARTED),)


def _status(payload: Json) -> Iterable[Said]:
    return HOOK.read(payload, STATUSES, "status", within="session.status/")


def _retry(payload: Json) -> Iterable[Said]:
    return (HOOK.say(payload, What.RETRIES, why=words(text(payload, "message")), until=moment(payload, "next")),)


def _idle(payload: Json) -> Iterable[Said]:
    if text(payload, "parentID"):
        return (HOOK.say(payload, What.SUBAGENT_ENDED, id=word(payload, "sessionID")),)
    return (HOOK.say(payload, What.TURN_ENDED),)


def _part(payload: Json) -> Iterable[Said]:
    if table(payload, "tokens"):
        return (HOOK.say(payload, What.ALIVE, usage=usage_of(payload)),)
    what = TOOLS.get(text(payload, "status"), What.ALIVE)
    failed = text(payload, "status") == "error"
    return (HOOK.say(payload, what, word(payload, "tool"), word(payload, "callID"), failed=failed),)


def _asked(payload: Json) -> Iterable[Said]:
    return (HOOK.say(payload, What.ASKED, word(payload, "permission") or "question", word(payload, "id")),)


def _failed(payload: Json) -> Iterable[Said]:
    (met,) = wall_in(payload)
    return (met if not text(payload, "parentID") else HOOK.say(payload, What.ERROR, why=met.text),)


ANSWERED = HOOK.says(What.ANSWERED, id="id", why="reply")
TOOLS = {"running": What.TOOL_STARTED, "completed": What.TOOL_ENDED, "error": What.TOOL_ENDED}
STATUSES: dict[str, Reader] = {"busy": HOOK.says(What.TURN_STARTED), "retry": _retry, "idle": _idle}
HOOKS: dict[str, Reader] = {
    "plugin.loaded": HOOK.says(What.STARTED),
    "session.created": _created,
    "session.status": _status,
    "session.error": _failed,
    "session.compacted": HOOK.says(What.COMPACTED),
    "message.updated": HOOK.says(What.PROMPT),
    "message.part.updated": _part,
    "permission.asked": _asked,
    "permission.replied": ANSWERED,
    "question.asked": _asked,
    "question.replied": ANSWERED,
    "question.rejected": ANSWERED,
}
