"""Operators: what each verb does to a session; every state has an answer to each."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.book import Book
from vigil.core.effects import Answer
from vigil.core.events import Asked, Declared, Withdrawn
from vigil.core.handlers.admission import launch_when_paced
from vigil.core.handlers.adoption import release
from vigil.core.handlers.charge import forgive
from vigil.core.handlers.conversation import decide_wake, log_wake
from vigil.core.handlers.end import FOLLOWS, end
from vigil.core.handlers.launch import relaunch
from vigil.core.handlers.transition import become
from vigil.core.model.death import IntentVerb
from vigil.core.model.launch import Mode
from vigil.core.model.replace import replace
from vigil.core.model.restart import After, HoldReason
from vigil.core.model.session import ALIVE, Session, State

TRIES = (IntentVerb.START, IntentVerb.RESTART, IntentVerb.RESET)  # after these the next launch does not wait for earlier walls
ENDED_BY_RESET = frozenset(HoldReason) - {HoldReason.PACE, HoldReason.MEMORY, HoldReason.KEEPER, HoldReason.SURVIVOR}


def declared(book: Book, event: Declared, now: float) -> None:
    """When an operator declares a session: make it; it launches when its turn comes."""
    assert event.name not in book.by_name, "checked at the door"
    session = Session(event.session_id, event.name, event.spec, now, State.PENDING, now, "declared", account=event.account)
    book.keep(session)
    book.log(now, session, "session.declared", actor=event.actor, agent=event.spec.agent, runtime=event.spec.runtime.value)
    launch_when_paced(book, session, now)


def withdrawn(book: Book, event: Withdrawn, _now: float) -> None:
    """When an operator's declaration never became durable: forget its session."""
    session = book.sessions[event.session_id]
    book.forget(session)
    if session.account:  # it may have been the last that waited for their wall
        book.reconsider(other for other in book.sessions.values() if other.account == session.account)


def asked(book: Book, event: Asked, now: float) -> None:
    """Log an operator's command, then carry it out."""
    session = book.sessions.get(event.session_id)
    if session is None:
        return
    book.log(now, session, f"session.asked-{event.verb}", actor=event.actor, reason=event.reason)
    if event.verb in TRIES:
        session = book.keep(replace(session, asked_at=now))
    VERBS[event.verb](book, session, event, now)


def stop(book: Book, session: Session, event: Asked, now: float) -> None:
    """Stop a session for an operator: end it and keep it stopped."""
    if session.state in ALIVE:
        end(book, session, event, After.STOP, now)
    elif session.launch is not None and session.state is not State.STOPPED:  # its survivors go too
        session = become(book, session, now, State.ENDING, "ending what its last launch left", hold=None, after=After.STOP)
        book.end_all(session.launch)
    elif session.state is not State.STOPPED:
        become(book, session, now, State.STOPPED, f"stopped by {event.actor}", hold=None, after=None)


def hibernate(book: Book, session: Session, event: Asked, now: float) -> None:
    """Put a session to sleep for an operator, until it is woken."""
    if why_not_parked(session) is None and session.state is not State.PARKED:
        end(book, session, event, After.PARK, now)


def why_not_parked(session: Session) -> str | None:
    """Return why an operator cannot hibernate a session; None if it can, or sleeps already."""
    if session.state is State.PARKED or session.after is After.PARK:
        return None
    if session.state is State.ENDING and session.after in (After.STOP, After.REMOVE):
        return f"it is being ended ({session.why})"
    if session.state not in ALIVE:
        return f"it is {session.state}, and nothing of it is awake"
    return None


def wake(book: Book, session: Session, event: Asked, now: float) -> None:
    """Wake a session for an operator as the wake table says; log the decision first."""
    if event.transcript is not None:
        session = book.keep(replace(session, transcript=event.transcript))
    decided = decide_wake(book, session, now, Mode(event.mode) if event.mode else None, by_wake=True)
    log_wake(book, session, decided, now, event.actor)
    if event.ticket:
        book.do(Answer(event.ticket, decided))
    if decided.mode in (Mode.REFUSED, Mode.NOTHING):
        return
    if session.state is State.ENDING:  # it falls asleep first
        become(book, session, now, State.ENDING, f"woken by {event.actor}", after=After.RELAUNCH, waking=decided)
    else:
        relaunch(book, book.keep(replace(session, waking=decided)), now)


def start(book: Book, session: Session, event: Asked, now: float) -> None:
    """Start for an operator, with a new count, what is not alive or is ending."""
    if session.state is State.ENDING or (session.state is State.STUCK and session.after is not None):
        end(book, session, event, After.RELAUNCH, now)
    elif session.state not in ALIVE:
        relaunch(book, forgive(book, replace(session, archived_at=None)), now)


def restart(book: Book, session: Session, event: Asked, now: float) -> None:
    """Restart a session for an operator: end and launch it, or just launch it."""
    if session.state in ALIVE:
        end(book, session, event, After.RELAUNCH, now)
    else:
        relaunch(book, replace(session, archived_at=None), now)


def rm(book: Book, session: Session, event: Asked, now: float) -> None:
    """Remove a session for an operator: end it, verified, then forget it."""
    _end_and(book, session, event, After.REMOVE, "being removed", now)


def archive(book: Book, session: Session, event: Asked, now: float) -> None:
    """Archive a session for an operator: end it, verified, then keep only its record."""
    _end_and(book, session, event, After.ARCHIVE, "being archived", now)


def _end_and(book: Book, session: Session, event: Asked, after: After, words: str, now: float) -> None:
    if session.state in ALIVE:
        end(book, session, event, after, now)
    elif session.launch is None:
        FOLLOWS[after](book, session, now)
    else:  # what its last launch left goes first
        session = become(book, session, now, State.ENDING, words, hold=None, after=after)
        book.end_all(session.launch)


def reset(book: Book, session: Session, event: Asked, now: float) -> None:
    """Reset a session for an operator: forget its charges, end its wait, try again."""
    role = book.role_of(session)
    session = book.keep(replace(session, quarantined=(), strikes=0))
    forgive(book, session)
    for each in [session] if role is None else book.replicas(role.key):
        _end_wait(book, book.sessions[each.id], event, now)


def _end_wait(book: Book, session: Session, event: Asked, now: float) -> None:
    waiting = session.state is State.FAILED or session.waits_for in ENDED_BY_RESET
    if waiting and session.state not in ALIVE:
        book.log(now, session, "session.reset", actor=event.actor)
        relaunch(book, replace(session, asked_at=now), now)


VERBS: dict[IntentVerb, Callable[[Book, Session, Asked, float], None]] = {
    IntentVerb.STOP: stop,
    IntentVerb.START: start,
    IntentVerb.RESTART: restart,
    IntentVerb.RM: rm,
    IntentVerb.RESET: reset,
    IntentVerb.HIBERNATE: hibernate,
    IntentVerb.WAKE: wake,
    IntentVerb.ARCHIVE: archive,
    IntentVerb.RELEASE: release,
}
