"""Heartbeats: a session gives the signs of life that its role promises, in any word of its agent.

After `failures` missed in a row Vigil ends and charges it (P4), unless a person, progress or doubt forbids that (P2)."""

from __future__ import annotations

from vigil.core.book import GRACE_S, Book
from vigil.core.effects import EndLaunch, SetTimer, TimerKind
from vigil.core.handlers.intent import intend
from vigil.core.handlers.transition import become
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.replace import replace
from vigil.core.model.session import Pulse, PulseState, Session, State, with_vitals
from vigil.core.model.team import Health
from vigil.core.rules.heartbeat import KEEPS


def health_of_role(book: Book, session: Session) -> Health | None:
    """Return the heartbeats that a session's role promises; None if it promises none."""
    role = book.role_of(session)
    return None if role is None else role.spec.health


def begin(book: Book, session: Session, now: float) -> Session:
    """Begin to wait for a launch's heartbeats; the first may take its grace."""
    health, launch = health_of_role(book, session), session.launch
    if health is None or launch is None or launch.started_at is None:
        return session if session.vitals.pulse is None else book.keep(with_vitals(session, pulse=None))
    pulse = Pulse(PulseState.UNKNOWN, max(now, launch.started_at) + health.grace_s)
    book.do(SetTimer(session.id, TimerKind.PULSE, pulse.due_from + health.heartbeat_s))
    return book.keep(with_vitals(session, pulse=pulse))


def rest(book: Book, session: Session, now: float) -> Session:
    """Wait for heartbeats anew from now: before that, Vigil did not listen."""
    health, pulse = health_of_role(book, session), session.vitals.pulse
    if health is None or pulse is None:
        return session
    pulse = replace(pulse, due_from=max(now, pulse.due_from))
    book.do(SetTimer(session.id, TimerKind.PULSE, pulse.due_from + health.heartbeat_s))
    return book.keep(with_vitals(session, pulse=pulse))


def heard(book: Book, session: Session, at: float, now: float) -> Session:
    """Take in a heartbeat; log the first, and the first after silence."""
    pulse, health = session.vitals.pulse, health_of_role(book, session)
    if pulse is None or health is None:
        return session
    if pulse.state is PulseState.HEALTHY:
        # Not stored: a write for each sign would cost more than it tells.
        return with_vitals(session, pulse=replace(pulse, due_from=max(at, pulse.due_from)))
    grace_s = health.grace_s if pulse.state is PulseState.UNKNOWN else 0.0
    before = max(pulse.due_from - grace_s, book.void_before)  # a late word counts from the last due moment
    session = with_vitals(session, pulse=replace(pulse, due_from=max(at, before)))
    book.do(SetTimer(session.id, TimerKind.PULSE, max(at, before) + health.heartbeat_s))
    return _turn(book, session, PulseState.HEALTHY, "it gives signs of life", now)


def check(book: Book, session: Session, now: float) -> None:
    """When a heartbeat is due: count the missed ones; end the session after too many."""
    pulse, health = session.vitals.pulse, health_of_role(book, session)
    ended = session.launch is None or session.launch.ended_at is not None
    if pulse is None or health is None or ended or session.state is State.ENDING:
        return
    missed = max(0, int((now - pulse.due_from) / health.heartbeat_s + 1e-6))
    words = f"no sign of life for {now - pulse.due_from:.0f} s, {missed} of {health.failures} missed"
    if missed >= health.failures:
        if pulse.state is not PulseState.UNHEALTHY:
            session = _turn(book, session, PulseState.UNHEALTHY, words, now)
        if _end(book, session, health, words, now):
            return
    elif missed > 0 and pulse.state in (PulseState.UNKNOWN, PulseState.HEALTHY):
        _turn(book, session, PulseState.LATE, words, now)
    book.do(SetTimer(session.id, TimerKind.PULSE, pulse.due_from + (missed + 1) * health.heartbeat_s))


def _end(book: Book, session: Session, health: Health, words: str, now: float) -> bool:
    """End a session without heartbeats, or show why it is kept; say which."""
    assert session.launch is not None
    kept = next((row.why for row in KEEPS if row.holds(session, health, now)), None)
    if kept is not None:
        if session.state is State.RUNNING:
            become(book, session, now, State.RUNNING, f"unhealthy: {words}; not ended: {kept}")
        return False
    intent = intend(book, session, IntentVerb.UNHEALTHY, Cause.UNHEALTHY, "policy", words, now)
    become(book, session, now, State.ENDING, f"unhealthy: {words}", hold=None, after=None, intent=intent)
    book.do(EndLaunch(session.launch, GRACE_S, unless_attended=True))
    return True


def _turn(book: Book, session: Session, state: PulseState, why: str, now: float) -> Session:
    assert session.vitals.pulse is not None
    before = session.vitals.pulse.state
    session = book.keep(with_vitals(session, pulse=replace(session.vitals.pulse, state=state)))
    book.log(now, session, "session.health", **{"from": before.value, "to": state.value, "why": why})
    return session
