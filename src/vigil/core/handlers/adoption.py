"""Adoption: Vigil takes over live sessions that its store does not know, or that started elsewhere."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import Release
from vigil.core.events import Adopted, Asked, Recovered
from vigil.core.handlers import incident
from vigil.core.handlers.end import remove
from vigil.core.handlers.transition import become
from vigil.core.model.incident import IncidentKind
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State, with_vitals
from vigil.words import some

ONLY_THERE = "what only the store knew is lost: who slept or was stopped, what waited to be typed, counters and history"


def recovered(book: Book, event: Recovered, now: float) -> None:
    """Adopt live sessions that the store does not know, with one incident for all."""
    for session in event.sessions:
        before = book.sessions.get(session.id)
        if (before is None and session.name in book.by_name) or session.launch is None:
            continue
        if before is not None:
            session = with_vitals(replace(before, launch=session.launch, launches=session.launches), axes=session.vitals.axes)
            session = with_vitals(replace(session, hold=None, after=None), intent=None, doubt=None)
        session = replace(session, worked={**session.worked, "recovery": now})
        assert session.launch is not None
        book.change.launches.append(session.launch)
        session = become(book, session, now, State.RUNNING, "found alive, and unknown to the store")
        book.log(now, session, "session.recovered", why=event.why)
    words = f"{event.why}: {some(len(event.sessions), 'session was', 'sessions were')} adopted from launches/; {ONLY_THERE}"
    incident.open_incident(book, IncidentKind.STORE_LOST, None, words, now)


def adopted(book: Book, event: Adopted, now: float) -> None:
    """Take in the adoption of a session that was started elsewhere."""
    session = event.session
    assert session.launch is not None and session.name not in book.by_name, "checked at the door"
    session = book.keep(book.read_axes(session, event.facts))
    assert session.launch is not None and session.launch.host is not None
    book.change.launches.append(session.launch)
    pid = session.launch.agent.pid if session.launch.agent is not None else None
    host = session.launch.host
    data = {"target": host.name, "socket": host.socket, "pid": pid, "agent": session.spec.agent}
    book.log(now, session, "session.adopted", actor=event.actor, **data)


def release(book: Book, session: Session, event: Asked, now: float) -> None:
    """Forget an adopted session and leave its processes alone; never one that Vigil launched."""
    if session.launch is None or session.launch.host is None:
        return
    book.log(now, session, "session.released", actor=event.actor, reason=event.reason)
    book.do(Release(session.launch))
    remove(book, session, now)
