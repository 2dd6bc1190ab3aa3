"""Notices: an incident keeps the fate of each of its notices; a route that gives up has an incident of its own."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import Tell
from vigil.core.events import Acked, Notified, Reached
from vigil.core.handlers.incident import log, open_incident, resolve
from vigil.core.model.incident import Incident, IncidentKind, Notice, NoticeEvent, NoticeState
from vigil.core.model.replace import replace
from vigil.core.rules.incident import key_of
from vigil.core.rules.notice import GIVEN_UP, cancelled, is_revivable, revived, uncancelled, why_unwanted
from vigil.words import some

NOTICES_KEPT = 100


def notified(book: Book, event: Notified, now: float) -> None:
    """Take in what became of a notice; a route that gives up gets an incident."""
    incident = book.find_incident(event.incident_id)
    if incident is None:
        return
    notice = event.notice
    if notice.state is NoticeState.SENDING and any(
        one.id == notice.id and one.attempts >= notice.attempts for one in incident.notices
    ):
        return  # a late loop hears of the attempt after its outcome
    others = tuple(_overtaken(other, notice) for other in incident.notices if other.id != notice.id)
    why = why_unwanted(notice.event, notice.route, incident)
    if why is not None:
        notice = cancelled(notice, why)
    elif incident.resolved_at is None or notice.event is NoticeEvent.RESOLVED:  # it came back, or is over again
        notice = uncancelled(notice, now)
    incident = replace(incident, notices=(*others, notice)[-NOTICES_KEPT:])
    book.keep_incident(incident)
    if notice.state is NoticeState.SENDING:
        return
    words = {"route": notice.route, "state": notice.state, "why": notice.why, "event": notice.event}
    log(book, now, incident, "incident.notified", **words, attempts=notice.attempts, retry_at=notice.retry_at)
    book.do(Tell(incident))
    if notice.state in GIVEN_UP and (book.routes is None or notice.route in book.routes):
        _given_up(book, notice, now)
    elif notice.state is NoticeState.SENT:
        reached(book, Reached(notice.route), now)


def _overtaken(other: Notice, notice: Notice) -> Notice:
    """Cancel a notice that a later repeat of the same step replaces."""
    same = notice.rung is not None and other.route == notice.route and notice.rung.is_same_step(other.rung)
    return cancelled(other, "the next one took its place") if same else other


def _given_up(book: Book, notice: Notice, now: float) -> None:
    route = notice.route
    said = f": {notice.why}" if notice.why else ""
    words = (
        f"route {route} does not deliver, after {some(notice.attempts, 'attempt')}{said}; vigil notify test {route} tries it"
    )
    subject = f"route-{route}"
    before = book.incidents.get(key_of(IncidentKind.UNDELIVERED, subject))
    if before is not None:
        book.keep_incident(replace(before, count=before.count + 1, why=words))
    else:
        open_incident(book, IncidentKind.UNDELIVERED, None, words, now, subject, about=(route,))


def reached(book: Book, event: Reached, now: float) -> None:
    """When a route delivers: resolve its incident, and retry once the notices it gave up."""
    key = key_of(IncidentKind.UNDELIVERED, f"route-{event.route}")
    if key in book.incidents:
        resolve(book, key, f"route {event.route} delivers again", now)
        for incident in [*book.incidents.values(), *book.resolved.values()]:
            _revive(book, incident, event.route, now)


def _revive(book: Book, incident: Incident, route: str, now: float) -> None:
    """Retry an incident's newest given-up notice, if it holds and no later one arrived."""
    own = [notice for notice in incident.notices if notice.route == route and notice.state is not NoticeState.CANCELLED]
    newest = max(own, key=lambda notice: notice.at, default=None)
    if newest is None or not is_revivable(newest, now) or why_unwanted(newest.event, route, incident) is not None:
        return
    notices = tuple(revived(notice, now) if notice.id == newest.id else notice for notice in incident.notices)
    incident = replace(incident, notices=notices)
    book.keep_incident(incident)
    log(book, now, incident, "incident.told-after-all", route=route, event=newest.event)
    book.do(Tell(incident))


def acked(book: Book, event: Acked, now: float) -> None:
    """Stop all notices of an incident that a person acknowledged, until it is over."""
    incident = book.find_incident(event.incident_id)
    if incident is None or incident.resolved_at is not None or incident.acked_at is not None:
        return
    notices = tuple(cancelled(notice, "it was acknowledged") for notice in incident.notices)
    incident = replace(incident, acked_at=now, acked_by=event.actor, notices=notices)
    book.keep_incident(incident)
    log(book, now, incident, "incident.acked", actor=event.actor)
    book.do(Tell(incident))
