"""The hooks of Codex: what one payload says; names and most fields are Claude Code's, `notify` has one event."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vigil.agents.claude import hooks as claude_hooks
from vigil.agents.shapes import Json, declared, event_name, word
from vigil.core.model.speech import Said, What

Reader = Callable[[Json], Iterable[Said]]


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload of a hook or of `notify` says."""
    plainly = declared(payload)
    return (plainly,) if plainly is not None else HOOKS.get(event_name(payload), claude_hooks.read_hook)(payload)


def _permission(payload: Json) -> Iterable[Said]:
    return (_of_hook(payload, What.ASKED, _question(payload)),)


def _post_tool(payload: Json) -> Iterable[Said]:
    answered = _of_hook(payload, What.ANSWERED, _question(payload))
    return (answered, _of_hook(payload, What.TOOL_ENDED, word(payload, "tool_use_id")))


def _of_hook(payload: Json, what: What, id: str) -> Said:
    subagent = word(payload, "agent_id")
    return Said(what, name=word(payload, "tool_name"), id=id, conversation=word(payload, "session_id"), subagent=subagent)


def _question(payload: Json) -> str:
    """Return an id for a question: Codex gives a permission none, and its input differs from the tool's."""
    return f"permission:{word(payload, 'tool_name')}"


def _notify(payload: Json) -> Iterable[Said]:
    return (Said(What.TURN_ENDED, conversation=word(payload, "thread-id")),)


HOOKS: dict[str, Reader] = {
    "PermissionRequest": _permission,
    "PostToolUse": _post_tool,
    "agent-turn-complete": _notify,
}
