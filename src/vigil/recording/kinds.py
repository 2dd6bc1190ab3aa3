"""The kinds of events and effects: a recording names each by its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from vigil.codec import NotUnderstood, read
from vigil.core.effects import Effect
from vigil.core.events import Event

EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
EFFECTS: dict[str, type[Effect]] = {kind.__name__: kind for kind in get_args(Effect)}


def tagged(value: Event | Effect) -> dict[str, object]:
    """Return an event or effect under its type's name, ready to be dumped."""
    return {type(value).__name__: value}


def read_tagged(kinds: Mapping[str, type], value: Any, unknown: list[str]) -> Any:
    """Return an event or effect from under its name; adds the names of unknown fields to `unknown`."""
    if not isinstance(value, dict) or len(value) != 1:
        raise NotUnderstood((), "an event or effect stands under its name, alone")
    ((name, body),) = value.items()
    if name not in kinds:
        raise NotUnderstood((), f"today's core does not know {name}")
    return read(kinds[name], body, name, unknown)
