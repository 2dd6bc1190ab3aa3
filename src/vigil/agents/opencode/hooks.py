"""Our plugin in OpenCode: what it tells, and what that says (1.18)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vigil.agents.opencode.stream import usage_of, wall_in
from vigil.agents.shapes import Json, declared, event_name, moment, table, text, word, words
from vigil.core.model.speech import Said, What

Reader = Callable[[Json], Iterable[Said]]
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
    plainly = declared(payload)
    if plainly is not None:
        return (plainly,)
    return HOOKS.get(event_name(payload), _unknown_hook)(payload)


def _told(payload: Json, what: What, name: str = "", id: str = "", why: str = "", failed: bool = False) -> Said:
    at, session = moment(payload, "timestamp"), word(payload, "sessionID")
    mine = not text(payload, "parentID")
    return Said(
        what,
        at,
        name=name,
        id=id,
        text=why,
        failed=failed,
        conversation=session if mine else "",
        subagent="" if mine else session,
    )


def _unknown_hook(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.UNKNOWN, event_name(payload)),)


def _loaded(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.STARTED),)


def _created(payload: Json) -> Iterable[Said]:
    if text(payload, "parentID"):
        return (_told(payload, What.SUBAGENT_STARTED, id=word(payload, "sessionID")),)
    return (_told(payload, What.STARTED),)


def _status(payload: Json) -> Iterable[Said]:
    status = word(payload, "status")
    read = STATUSES.get(status)
    return (_told(payload, What.UNKNOWN, f"session.status/{status}"),) if read is None else read(payload)


def _busy(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.TURN_STARTED),)


def _retry(payload: Json) -> Iterable[Said]:
    said = _told(payload, What.RETRIES)
    until = moment(payload, "next")
    why = words(text(payload, "message"))
    return (Said(said.what, said.at, text=why, until=until, conversation=said.conversation, subagent=said.subagent),)


def _idle(payload: Json) -> Iterable[Said]:
    if text(payload, "parentID"):
        return (_told(payload, What.SUBAGENT_ENDED, id=word(payload, "sessionID")),)
    return (_told(payload, What.TURN_ENDED),)


def _prompt(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.PROMPT),)


def _part(payload: Json) -> Iterable[Said]:
    tokens = table(payload, "tokens")
    if tokens:
        said = _told(payload, What.ALIVE)
        return (Said(said.what, said.at, conversation=said.conversation, usage=usage_of(payload), subagent=said.subagent),)
    what = TOOLS.get(text(payload, "status"), What.ALIVE)
    failed = text(payload, "status") == "error"
    return (_told(payload, what, word(payload, "tool"), word(payload, "callID"), failed=failed),)


def _asked(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.ASKED, word(payload, "permission") or "question", word(payload, "id")),)


def _answered(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.ANSWERED, id=word(payload, "id"), why=word(payload, "reply")),)


def _failed(payload: Json) -> Iterable[Said]:
    (met,) = wall_in(payload)
    return (met if not text(payload, "parentID") else _told(payload, What.ERROR, why=met.text),)


def _compacted(payload: Json) -> Iterable[Said]:
    return (_told(payload, What.COMPACTED),)


TOOLS = {"running": What.TOOL_STARTED, "completed": What.TOOL_ENDED, "error": What.TOOL_ENDED}
STATUSES: dict[str, Reader] = {"busy": _busy, "retry": _retry, "idle": _idle}
HOOKS: dict[str, Reader] = {
    "plugin.loaded": _loaded,
    "session.created": _created,
    "session.status": _status,
    "session.error": _failed,
    "session.compacted": _compacted,
    "message.updated": _prompt,
    "message.part.updated": _part,
    "permission.asked": _asked,
    "permission.replied": _answered,
    "question.asked": _asked,
    "question.replied": _answered,
    "question.rejected": _answered,
}
