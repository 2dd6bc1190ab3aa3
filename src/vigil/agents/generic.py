"""Generic: an agent that Vigil knows nothing of; it reports plainly, or in the words of an agent we know.

It has no stream and no transcript, and Vigil adds nothing to its command."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vigil.agents.claude import hooks as claude_hooks
from vigil.agents.codex import hooks as codex_hooks
from vigil.agents.contract import Adapter
from vigil.agents.gemini import hooks as gemini_hooks
from vigil.agents.opencode import hooks as opencode_hooks
from vigil.agents.pi import hooks as pi_hooks
from vigil.agents.shapes import Json, event_name, text
from vigil.core.model.speech import Said

Reader = Callable[[Json], Iterable[Said]]
# Where several agents use a name, the last row wins.
KNOWN: dict[str, Reader] = {
    **dict.fromkeys(pi_hooks.HOOKS, pi_hooks.read_hook),
    **dict.fromkeys(opencode_hooks.HOOKS, opencode_hooks.read_hook),
    **dict.fromkeys(gemini_hooks.HOOKS, gemini_hooks.read_hook),
    **dict.fromkeys(codex_hooks.HOOKS, codex_hooks.read_hook),
    **dict.fromkeys(claude_hooks.EVENTS, claude_hooks.read_hook),
}


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says: an activity, a heartbeat, or an event of a known agent."""
    name = event_name(payload)
    if name == "Notification" and text(payload, "notification_type") == gemini_hooks.PERMISSION:
        return gemini_hooks.read_hook(payload)
    return KNOWN.get(name, claude_hooks.read_hook)(payload)


ADAPTER = Adapter("generic", read_hook=read_hook)
