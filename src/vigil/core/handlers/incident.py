"""Incidents: each opens once, takes in what is the same, resolves once, and the escalator hears of every change (P12)."""

from __future__ import annotations

from typing import Any

from vigil.core.book import Book
from vigil.core.effects import LogEntry, SetTimer, Tell, TimerKind
from vigil.core.events import Condition
from vigil.core.model.death import EvidenceLine
from vigil.core.model.incident import Incident, IncidentKind, Notice, Severity
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.rules.explain import explain
from vigil.core.rules.incident import EVENTS, MARGIN_S, incident_of, key_of, opened, same_s
from vigil.core.rules.notice import OVER, REMOVED, cancelled, why_unwanted
from vigil.core.rules.reaction import react_at, reaction_to


def condition(book: Book, event: Condition, now: float) -> None:
    """When a sensor reports a condition: open its incident, or resolve it."""
    key = key_of(event.kind)
    if event.holds:
        open_incident(book, event.kind, None, event.why, event.at)
    elif key in book.incidents:
        resolve(book, key, event.why, now)


def open_incident(
    book: Book,
    kind: IncidentKind,
    session: Session | None,
    why: str,
    now: float,
    subject: str | None = None,
    about: tuple[str, ...] = (),
) -> None:
    """Open an incident, update the open one, or reopen one that ended only just now."""
    key = key_of(kind, subject or (session.id if session else "host"))
    before = book.incidents.get(key)
    if before is not None:
        if before.why != why:
            book.keep_incident(replace(before, count=before.count + 1, why=why))
        return
    fresh = replace(incident_of(kind, session, why, now, subject), key=key, about=about)
    if session is not None:
        fresh = replace(fresh, evidence=_evidence(session))
    if kind is IncidentKind.SATURATED and session is not None:
        role = book.role_of(session)
        fresh = replace(fresh, deaths=session.deaths if role is None else role.deaths)
    incident = opened(fresh, book.last_over(key))
    if incident.reopened:
        incident = replace(incident, deaths=fresh.deaths or incident.deaths)
    book.keep_incident(incident)
    log(book, now, incident, "incident.opened", why=why, severity=incident.severity.value, count=incident.count)
    book.do(Tell(incident))
    plan_reaction(book, incident, now)


def _evidence(session: Session) -> tuple[EvidenceLine, ...]:
    return tuple(EvidenceLine(proof.source, f"{proof.fact}: {proof.value}") for proof in explain(session).evidence)


def say_anew(book: Book, key: str, why: str) -> None:
    """Update the words of an open incident; it stays the same one."""
    if book.incidents[key].why != why:
        book.keep_incident(replace(book.incidents[key], why=why))
        book.do(Tell(book.incidents[key]))


def remind(book: Book, key: str, why: str) -> None:
    """Count one more reminder of an open incident, and have people told."""
    before = book.incidents.get(key)
    if before is not None:
        book.keep_incident(replace(before, why=why, count=before.count + 1, reminders=before.reminders + 1))
        book.do(Tell(book.incidents[key]))


def resolve(book: Book, key: str, resolution: str, now: float, final: bool = False, hushed: bool = False) -> None:
    """Resolve an open incident: `final` lets it never reopen, `hushed` sends no all-clear."""
    before = book.incidents[key]
    resolved_at = max(now, before.opened_at)
    final = final or before.kind in EVENTS
    incident = replace(
        before,
        resolved_at=resolved_at,
        resolution=resolution,
        over_at=resolved_at if final else resolved_at + same_s(before) + MARGIN_S,
        hushed=hushed,
        # Not known yet, right after a start: there may be routes.
        owed=before.severity is Severity.URGENT and before.acked_at is None and not hushed and book.routes != (),
    )
    incident = replace(incident, notices=tuple(_over(notice, incident) for notice in before.notices))
    book.keep_incident(incident)
    log(book, now, incident, "incident.resolved", resolution=resolution)
    book.do(Tell(incident))


def _over(notice: Notice, incident: Incident) -> Notice:
    """Cancel a notice that nobody needs to hear once its incident is over."""
    unwanted = why_unwanted(notice.event, notice.route, incident) is not None
    return cancelled(notice, OVER) if unwanted else notice


def hush(book: Book, incident: Incident) -> None:
    """Cancel the all-clear of an incident whose session was removed."""
    # The person who removed the session knows.
    notices = tuple(cancelled(notice, REMOVED) for notice in incident.notices)
    book.keep_incident(replace(incident, hushed=True, owed=False, over_at=incident.resolved_at, notices=notices))
    book.do(Tell(book.resolved[incident.id]))


def plan_reaction(book: Book, incident: Incident, now: float) -> None:
    """When an incident opens or changes: set the timer of its next reaction, if any."""
    reaction = reaction_to(incident, book.reactions)
    if reaction is not None and incident.acked_at is None and incident.escalated_at is None:
        book.do(SetTimer(incident.key, TimerKind.REACT, max(now, react_at(incident, reaction))))


def log(book: Book, at: float, incident: Incident, kind: str, **data: Any) -> None:
    """Write to the event log what happened to an incident."""
    words = {"incident": incident.id, "kind": incident.kind.value, **data}
    book.change.log.append(LogEntry(at, kind, incident.session_id, incident.session, data=words))
