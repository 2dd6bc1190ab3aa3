"""Reminders: Vigil reminds people of an unanswered question, ever more rarely."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.handlers.incident import remind
from vigil.core.model.death import Confidence
from vigil.core.model.incident import IncidentKind
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, with_vitals
from vigil.core.model.stall import Stall, Thresholds
from vigil.core.rules import incident
from vigil.core.rules.stall.schedule import reminder_at, reminders_of
from vigil.core.rules.stall.verdict import StallVerdict
from vigil.words import minutes


def remind_of_questions(book: Book, session: Session, limits: Thresholds, now: float) -> Session:
    """Remind people of a waiting question if it is time; return the changed session."""
    asked = session.vitals.doing.asked
    names = ", ".join(dict.fromkeys(one.name or "something" for one in asked))
    due = now >= reminder_at(session, limits)
    told = reminders_of(session) + due
    words = f"asked for {names} {minutes(now - asked[0].since)} ago, and nobody has answered"
    stall = Stall(StallVerdict.WAITING_HUMAN, Confidence.CERTAIN, (words,), now, asked[0].since, warnings=told)
    trail = replace(session.vitals.trail, reminded_at=now, reminders=told) if due else session.vitals.trail
    session = book.keep(with_vitals(session, stall=stall, trail=trail), durable=due)
    if due:
        book.log(now, session, "session.reminded", asked=names, waits_s=round(now - asked[0].since), count=told)
        remind(book, incident.key_of(IncidentKind.NEEDS_INPUT, session.id), f"waits for a human: {words}")
    return session
