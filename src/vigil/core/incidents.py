"""Incidents: each opens once, takes in what is the same, and resolves once (P12).

Those of a session follow from what it is (incident_rules.py); those of the host are said by whoever saw them. Whoever tells
humans is told of every change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vigil.core.changing import replace
from vigil.core.effects import LogEntry, SetTimer, Tell
from vigil.core.escalate import SEVERITY
from vigil.core.events import Condition
from vigil.core.explain import explain
from vigil.core.incident import Incident, IncidentKind
from vigil.core.model import Evidence, Session
from vigil.core.outbox import cancelled, interrupted, uncancelled
from vigil.core.reactions import react_at, reaction_to

if TYPE_CHECKING:
    from vigil.core.book import Book

# What comes back so soon after it ended is the same incident, and whoever was told of it has not been told yet that it is over.
# The time doubles with every one that opens within an hour of the last: what flaps slowly is told a few times and not for ever.
SAME_S = 10.0
LONGEST_SAME_S = 600.0
REMEMBERED_S = 3600.0
MARGIN_S = 1.0  # an all-clear is not sent while the word that it came back may still be on its way
REMOVED = "its session was removed"
EVENTS = frozenset({IncidentKind.MASS_DEATH})  # something that happened at a moment: the next one is another one


def condition(book: Book, event: Condition, now: float) -> None:
    """Open or resolve an incident of the host, as whoever saw it says."""
    key = key_of(event.kind)
    if event.holds:
        open_incident(book, event.kind, None, event.why, event.at)
    elif key in book.incidents:
        resolve(book, key, event.why, now)


def key_of(kind: IncidentKind, session_id: str = "host") -> str:
    """Return what an incident is one of."""
    return f"{session_id}/{kind}"


def open_incident(
    book: Book,
    kind: IncidentKind,
    session: Session | None,
    why: str,
    now: float,
    subject: str | None = None,
    about: tuple[str, ...] = (),
) -> None:
    """Open an incident; one that is open already takes in what is new, and one that was over only just now is open again."""
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


def incident_of(kind: IncidentKind, session: Session | None, why: str, at: float, subject: str | None = None) -> Incident:
    """Return an incident as it opens."""
    whose = session.id if session else subject or "host"
    return Incident(
        id=f"i-{whose}-{kind}-{int(at * 1_000_000):x}",
        key=key_of(kind, whose),
        kind=kind,
        severity=SEVERITY[kind],
        session_id=session.id if session else None,
        session=session.name if session else None,
        opened_at=at,
        why=why,
    )


def opened(fresh: Incident, before: Incident | None) -> Incident:
    """Return what is open: the one before if it was over only just now; else a new one, which knows what was before it."""
    if before is None or before.resolved_at is None or fresh.opened_at - before.resolved_at > REMEMBERED_S:
        return fresh
    now = fresh.opened_at
    if before.over_at is not None and before.resolved_at <= now < before.over_at - MARGIN_S:
        return replace(
            before,
            resolved_at=None,
            resolution="",
            over_at=None,
            count=before.count + 1,
            why=fresh.why,
            reopened=before.reopened + 1,
            reopened_at=now,
            again_at=now + same_s(before),
            notices=tuple(uncancelled(notice, now) for notice in before.notices if notice.event != "resolved"),
        )
    fresh = replace(fresh, flaps=before.flaps + 1, spent=before.spent + len(before.reactions))
    # It resolved and opens again within one moment: another one all the same, with an id of its own.
    return replace(fresh, id=f"{fresh.id}-{fresh.flaps}") if fresh.id == before.id else fresh


def same_s(incident: Incident) -> float:
    """Return how soon an incident must come back to be the same one."""
    return min(LONGEST_SAME_S, SAME_S * 2.0 ** min(incident.flaps, 16))


def _evidence(session: Session) -> tuple[Evidence, ...]:
    return tuple(Evidence(proof.source, f"{proof.fact}: {proof.value}") for proof in explain(session).evidence)


def host_incident(kind: IncidentKind, why: str, at: float) -> Incident:
    """Return an incident of the host as it will be opened: whoever tells it before it is recorded tells the same one."""
    return incident_of(kind, None, why, at)


def say_anew(book: Book, key: str, why: str) -> None:
    """Let an open incident say how things are now: it is the same one, and nothing more happened."""
    if book.incidents[key].why != why:
        book.keep_incident(replace(book.incidents[key], why=why))
        book.do(Tell(book.incidents[key]))


def remind(book: Book, key: str, why: str) -> None:
    """Let whoever was told of an open incident be told again, once: it goes on."""
    before = book.incidents.get(key)
    if before is not None:
        book.keep_incident(replace(before, why=why, count=before.count + 1, reminders=before.reminders + 1))
        book.do(Tell(book.incidents[key]))


def resolve(book: Book, key: str, resolution: str, now: float, final: bool = False, hushed: bool = False) -> None:
    """Resolve an open incident: its condition is over; one that cannot come back is so for good, and hushed without a word."""
    before = book.incidents[key]
    resolved_at = max(now, before.opened_at)
    final = final or before.kind in EVENTS
    incident = replace(
        before,
        resolved_at=resolved_at,
        resolution=resolution,
        over_at=resolved_at if final else resolved_at + same_s(before) + MARGIN_S,
        notices=tuple(cancelled(notice, "it is over") for notice in before.notices),
        hushed=hushed,
    )
    book.keep_incident(incident)
    log(book, now, incident, "incident.resolved", resolution=resolution)
    book.do(Tell(incident))


def hush(book: Book, incident: Incident) -> None:
    """Let nobody hear that an incident is over: its session was removed before that was told."""
    notices = tuple(cancelled(notice, REMOVED) for notice in incident.notices)
    book.keep_incident(replace(incident, hushed=True, over_at=incident.resolved_at, notices=notices))
    book.do(Tell(book.resolved[incident.id]))


def take_up(book: Book, now: float) -> None:
    """A daemon took over: what was being sent or tried when the last one ended may have arrived, or been done."""
    for incident in [one for one in book.resolved.values() if (one.resolved_at or 0.0) > now]:
        # The clock was set back: nobody waits for a moment long past.
        book.keep_incident(replace(incident, resolved_at=now, over_at=now))
    for incident in (*book.incidents.values(), *book.resolved.values()):
        notices = tuple(interrupted(notice, now) for notice in incident.notices)
        words = "the daemon ended meanwhile"
        reactions = tuple(
            replace(one, outcome="unknown", why=words) if one.outcome == "begun" else one for one in incident.reactions
        )
        if notices != incident.notices or reactions != incident.reactions:
            book.keep_incident(replace(incident, notices=notices, reactions=reactions))
    for incident in list(book.incidents.values()):
        plan_reaction(book, incident, now)


def plan_reaction(book: Book, incident: Incident, now: float) -> None:
    """Ask for the moment of the next reaction to an incident, if there is one."""
    reaction = reaction_to(incident, book.reactions)
    if reaction is not None and incident.acked_at is None and incident.escalated_at is None:
        book.do(SetTimer(incident.key, "react", max(now, react_at(incident, reaction))))


def log(book: Book, at: float, incident: Incident, kind: str, **data: Any) -> None:
    """Say in the event log what happened to an incident."""
    words = {"incident": incident.id, "kind": incident.kind.value, **data}
    book.change.log.append(LogEntry(at, kind, incident.session_id, incident.session, data=words))
