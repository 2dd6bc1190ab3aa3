"""Upgrades: loading brings values of earlier versions up to today, once.

They kept a reap's class in its reason, a notice's step in its id, and a launch's vitals in the fields of its session."""

from __future__ import annotations

import re
from typing import Any

from vigil.core.model.death import Intent, IntentVerb
from vigil.core.model.incident import Incident, Notice, NoticeEvent, Rung
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, with_vitals
from vigil.core.model.sighting import ReapClass

RUNG = re.compile(r".*/(u?)(\d+)/(\d+)")
ALL_CLEAR = "/resolved/"
# The fields that schema 0003 and recordings of format 1 have in the session itself; this never changes.
ONCE_FLAT = {
    *("axes", "attached", "doubt", "intent", "pulse", "doing", "trail", "stall"),
    *("prompted_by", "spent_before", "read_to", "recent", "tally"),
}


def nested(session: Any) -> Any:
    """Return a session's JSON of any version upgraded: its vitals in one place."""
    if not isinstance(session, dict) or "vitals" in session:
        return session
    own = {name: value for name, value in session.items() if name not in ONCE_FLAT}
    return own | {"vitals": {name: value for name, value in session.items() if name in ONCE_FLAT}}


def with_nested_sessions(body: Any) -> Any:
    """Return the upgraded JSON of an event, effect or beginning, its sessions nested."""
    if not isinstance(body, dict):
        return body
    one, many = body.get("session"), body.get("sessions")
    if isinstance(many, list):
        return body | {"sessions": list(map(nested, many))}
    return body | {"session": nested(one)} if isinstance(one, dict) else body


def upgraded_session(session: Session) -> Session:
    """Return a stored session upgraded: its intents name the class they reap."""
    death = session.last_death
    if death is not None:
        session = replace(session, last_death=replace(death, intent=_upgraded_intent(death.intent)))
    return with_vitals(session, intent=_upgraded_intent(session.vitals.intent))


def upgraded_incident(incident: Incident) -> Incident:
    """Return a stored incident upgraded: its notices have their event and rung."""
    return replace(incident, notices=tuple(map(upgraded_notice, incident.notices)))


def upgraded_notice(notice: Notice) -> Notice:
    """Return a stored notice upgraded: with its rung, or marked as an all-clear."""
    if ALL_CLEAR in notice.id:
        return replace(notice, event=NoticeEvent.RESOLVED)
    found = RUNG.fullmatch(notice.id)
    if notice.rung is not None or found is None:
        return notice
    return replace(notice, rung=Rung(int(found[2]), int(found[3]), urgent=found[1] == "u"))


def _upgraded_intent(intent: Intent | None) -> Intent | None:
    if intent is None or intent.verb is not IntentVerb.REAP or intent.kind is not None:
        return intent
    kind, colon, why = intent.reason.partition(": ")
    return replace(intent, kind=ReapClass(kind), why=why) if colon and kind in set(ReapClass) else intent
