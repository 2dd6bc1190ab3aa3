"""Upgrades: what a value of an earlier version says today, worked out once where it is loaded.

Earlier versions kept the class of a reap in its reason, and the step of a notice in its id. No other place takes these apart.
"""

from __future__ import annotations

import re

from vigil.core.model.death import Intent, IntentVerb
from vigil.core.model.incident import Incident, Notice, NoticeEvent, Rung
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.sighting import ReapClass

RUNG = re.compile(r".*/(u?)(\d+)/(\d+)")
ALL_CLEAR = "/resolved/"


def upgraded_session(session: Session) -> Session:
    """Return a session whose intents say as what they reap."""
    death = session.last_death
    if death is not None:
        session = replace(session, last_death=replace(death, intent=_upgraded_intent(death.intent)))
    return replace(session, intent=_upgraded_intent(session.intent))


def upgraded_incident(incident: Incident) -> Incident:
    """Return an incident whose notices say what they are."""
    return replace(incident, notices=tuple(map(upgraded_notice, incident.notices)))


def upgraded_notice(notice: Notice) -> Notice:
    """Return a notice that says which step of its ladder it is, and that it is an all-clear."""
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
