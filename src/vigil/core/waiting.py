"""Waiting: holds that end, counts that are forgiven, and what a new daemon takes up again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vigil.core import incidents
from vigil.core.book import DOUBTED, Book
from vigil.core.charging import forgive, steady_at
from vigil.core.doubting import look_again
from vigil.core.effects import CloseLaunch, SetTimer, Tell
from vigil.core.events import Resumed, TimerFired
from vigil.core.launching import leaves_its_pane, relaunch
from vigil.core.liveness import rested
from vigil.core.model import Session, State

AGAIN_S = 60.0
UNBOUNDED = frozenset({"limit", "auth"})  # these wait for a moment of somebody else's clock


def timer_fired(book: Book, event: TimerFired, now: float) -> None:
    """A moment that was asked for has come; it may have come early, or for nothing."""
    session = book.sessions.get(event.session_id)
    if session is not None:
        TIMERS[event.kind](book, session, now)


def hold_over(book: Book, session: Session, now: float) -> None:
    """Launch again when the wait is really over."""
    hold = session.hold
    if hold is None or hold.until is None or session.state not in (State.CRASHED, State.PENDING):
        return
    if now < hold.until:
        book.do(SetTimer(session.id, "hold", hold.until))
    else:
        book.log(now, session, "session.hold-over", hold=hold.reason)
        relaunch(book, session, now, by_policy=True)


def stable(book: Book, session: Session, now: float) -> None:
    """Forgive the charges of a launch that has been up long enough; those of a role when all of its replicas have."""
    started_at = session.launch.started_at if session.launch else None
    if session.state not in DOUBTED or started_at is None or not book.charges_of(session):
        return
    stable_at = started_at + session.spec.restart.reset_after_s
    role = book.role_of(session)
    if role is not None:
        steady = steady_at(book, role)
        stable_at = max(stable_at, now + AGAIN_S if steady is None else steady)
    if session.state is not State.RUNNING:  # whether it is up is in doubt: that is asked again
        stable_at = max(stable_at, now + AGAIN_S)
    if now < stable_at:
        book.do(SetTimer(session.id, "stable", stable_at))
    else:
        forgive(book, session)


def resumed(book: Book, _event: Resumed, now: float) -> None:
    """Take up what was under way; live launches speak for themselves in events of their own."""
    stored = list(book.sessions.values())
    book.spawning |= {s.launch.id for s in stored if s.state is State.STARTING and s.launch and s.launch.process is None}
    for incident in [incident for incident in book.incidents.values() if incident.opened_at > now]:
        book.keep_incident(replace(incident, opened_at=now))  # the clock was set back: nobody waits for a moment long past
    for incident in (*book.incidents.values(), *book.resolved.values()):
        book.do(Tell(incident))
    for session in stored:
        incidents.follow(book, session, now)
        launch, hold = session.launch, session.hold
        waits = session.state in (State.CRASHED, State.PENDING)
        if session.state is State.ENDING:
            book.end_all(launch)
        elif waits and (hold is None or hold.reason in ("pace", "survivor")):
            relaunch(book, session, now, by_policy=True)
        else:
            if launch is not None and launch.ended_at is not None and not launch.closed and not leaves_its_pane(session):
                book.do(CloseLaunch(launch))
            if waits and hold is not None and hold.until is not None:
                session = _shorten(book, session, hold.until, now)
                book.do(SetTimer(session.id, "hold", session.hold.until if session.hold and session.hold.until else now))
            if session.doubt is not None:
                book.keep(replace(session, doubt=rested(session.doubt, now)))
                book.do(SetTimer(session.id, "look", now))


def _shorten(book: Book, session: Session, until: float, now: float) -> Session:
    """Let a wait be no longer than any its policy knows: the clock may have been set back while the host was off."""
    policy = session.spec.restart
    longest_s = max(policy.cap_s, policy.base_s) * (1 + policy.jitter)
    if until - now <= longest_s or session.hold is None or session.hold.reason in UNBOUNDED:
        return session
    return book.keep(replace(session, hold=replace(session.hold, until=now + longest_s)))


TIMERS: dict[str, Callable[[Book, Session, float], None]] = {
    "hold": hold_over,
    "stable": stable,
    "look": look_again,
    "incidents": incidents.follow,
}
