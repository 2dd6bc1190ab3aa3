"""Qwen Code: what its hooks say; they are Claude Code's."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.agents.claude import hooks as claude_hooks
from vigil.agents.shapes import Json, event_name, text
from vigil.core.model.speech import Said


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says; the empty prompt that Qwen submits after each tool is its own."""
    if event_name(payload) == "UserPromptSubmit" and not text(payload, "prompt"):
        payload = {**payload, "source": "system"}
    return claude_hooks.read_hook(payload)
