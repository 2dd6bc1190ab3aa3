"""The lines of a recording: the first says what the machine began with, each next what it was told and answered.

JSON, one value a line:

    {"vigil-recording": 2, "version": …, "at": …, "sessions": […], "incidents": […], "roles": […]}
    {"now": …, "event": {TYPE: {…}}, "effects": [{TYPE: {…}}, …]}
    {"now": …, "event": {TYPE: {…}}, "raised": "…"}          a fault of ours: the machine had no answer
    {"ended": "…"}                                            missing where the daemon was killed

Commands and words in them are without secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from vigil.codec import NotUnderstood, dump, read
from vigil.core.effects import Effect
from vigil.core.events import Event
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.recording.shown import REDACTOR, shown, shown_by
from vigil.redact import Redactor

FORMAT = 2  # raised when an older `vigil replay` would misread what is written; a new field is no such thing
MARK = "vigil-recording"
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
STOPPED = "the daemon stopped"  # the end of a recording that misses nothing


def begin_line(
    version: str,
    at: float,
    sessions: Iterable[Session],
    incidents: Iterable[Incident],
    roles: Iterable[Role] = (),
    redactor: Redactor = REDACTOR,
) -> str:
    """Return the first line: who records, since when, and what the machine was given."""
    given = {"sessions": list(sessions), "incidents": list(incidents), "roles": list(roles)}
    return dump({MARK: FORMAT, "version": version, "at": at, **given}, shown_by(redactor))


def entry_line(now: float, event: Event, answer: Iterable[Effect] | str, redactor: Redactor = REDACTOR) -> str:
    """Return the line of one event: the effects it had, or what the machine raised."""
    by = shown_by(redactor)
    if isinstance(answer, str):
        return dump({"now": now, "event": tagged(event), "raised": shown(answer, redactor)}, by)
    return dump({"now": now, "event": tagged(event), "effects": [tagged(effect) for effect in answer]}, by)


def end_line(why: str) -> str:
    """Return the last line of a recording that ended in order."""
    return dump({"ended": why})


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
