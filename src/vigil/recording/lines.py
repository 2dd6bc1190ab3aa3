"""The lines of a recording: the first says what the machine began with, each next what it was told and answered.

JSON, one value a line:

    {"vigil-recording": 2, "version": …, "at": …, "sessions": […], "incidents": […], "roles": […]}
    {"now": …, "event": {TYPE: {…}}, "effects": [{TYPE: {…}}, …]}
    {"now": …, "event": {TYPE: {…}}, "raised": "…"}          a fault of ours: the machine had no answer
    {"ended": "…"}                                            missing where the daemon was killed

Commands and words in them are without secrets.
"""

from __future__ import annotations

from collections.abc import Iterable

from vigil.codec import dump
from vigil.core.effects import Effect
from vigil.core.events import Event
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.recording.kinds import tagged
from vigil.recording.shown import shown, shown_fields_of

FORMAT = 2  # raised when an older `vigil replay` would misread what is written; a new field is no such thing
MARK = "vigil-recording"
STOPPED = "the daemon stopped"  # the end of a recording that misses nothing


def begin_line(
    version: str, at: float, sessions: Iterable[Session], incidents: Iterable[Incident], roles: Iterable[Role] = ()
) -> str:
    """Return the first line: who records, since when, and what the machine was given."""
    given = {"sessions": list(sessions), "incidents": list(incidents), "roles": list(roles)}
    return dump({MARK: FORMAT, "version": version, "at": at, **given}, shown_fields_of)


def entry_line(now: float, event: Event, answer: Iterable[Effect] | str) -> str:
    """Return the line of one event: the effects it had, or what the machine raised."""
    if isinstance(answer, str):
        return dump({"now": now, "event": tagged(event), "raised": shown(answer)}, shown_fields_of)
    return dump({"now": now, "event": tagged(event), "effects": [tagged(effect) for effect in answer]}, shown_fields_of)


def end_line(why: str) -> str:
    """Return the last line of a recording that ended in order."""
    return dump({"ended": why})
