"""The hooks of Codex: what one payload says; names and most fields are Claude Code's, `notify` has one event."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.agents.claude import hooks as claude_hooks
from vigil.agents.shapes import Json, declared, event_name, word
from vigil.agents.voice import Reader, Voice
from vigil.core.model.speech import Said, What

HOOK = Voice(conversation="session_id", subagent="agent_id")


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload of a hook or of `notify` says."""
    plainly = declared(payload)
    return (plainly,) if plainly is not None else HOOKS.get(event_name(payload), claude_hooks.read_hook)(payload)


def _permission(payload: Json) -> Iterable[Said]:
    return (HOOK.say(payload, What.ASKED, word(payload, "tool_name"), _question(payload)),)


def _post_tool(payload: Json) -> Iterable[Said]:
    name, call = word(payload, "tool_name"), word(payload, "tool_use_id")
    answered = HOOK.say(payload, What.ANSWERED, name, _question(payload))
    return (answered, HOOK.say(payload, What.TOOL_ENDED, name, call))


def _question(payload: Json) -> str:
    """Return an id for a question: Codex gives a permission none, and its input differs from the tool's."""
    return f"permission:{word(payload, 'tool_name')}"


HOOKS: dict[str, Reader] = {
    "PermissionRequest": _permission,
    "PostToolUse": _post_tool,
    "agent-turn-complete": Voice(conversation="thread-id").says(What.TURN_ENDED),
}
