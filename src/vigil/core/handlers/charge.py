"""Charging: one event is one charge, to a lone session or a role; its lowest slot shows `crashed` (DESIGN 4.3, 4.4)."""

from __future__ import annotations

from vigil.core.book import DOUBTED, Book
from vigil.core.effects import SetTimer
from vigil.core.handlers.launch import relaunch
from vigil.core.handlers.transition import become
from vigil.core.model.death import Death
from vigil.core.model.launch import Launch
from vigil.core.model.replace import replace
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.team import Role
from vigil.core.model.timer import TimerKind
from vigil.core.rules.restart import charge, is_saturated, jitter_of

DEATHS_KEPT = 5  # an incident lists these
EVENT_S = 1.0  # deaths of a role within this of the first are one event
AGAIN_S = 60.0


def charge_death(book: Book, session: Session, launch: Launch, death: Death, resets_at: float | None) -> tuple[int, Hold]:
    """Charge a death to its session or role; return the new count and the replacement's hold."""
    cause, at = death.cause, death.at
    policy, jitter, role = session.spec.restart, jitter_of(launch.id), book.role_of(session)
    if role is None:
        return charge(cause, at, session.charges, death.uptime_s or 0.0, policy, jitter, resets_at)
    if death.charged:
        role = book.keep_role(replace(role, deaths=(*role.deaths, death.id)[-DEATHS_KEPT:]))
        if role.hold is not None and _is_of_last_event(role, launch, at):
            return role.charges, role.hold
    steady = steady_at(book, role)
    before = 0 if steady is not None and at >= steady else role.charges
    count, hold = charge(cause, at, before, 0.0, policy, jitter, resets_at)
    if hold.reason == HoldReason.SATURATED and role.spec.retry_saturated_s > 0:
        hold = replace(hold, until=at + role.spec.retry_saturated_s)
    if death.charged:
        book.keep_role(replace(role, charges=count, event_at=at, hold=hold))
        book.do(SetTimer(role.key, TimerKind.STEADY, at + policy.reset_after_s))
    elif count != role.charges:
        book.keep_role(replace(role, charges=count))
    return count, hold


def _is_of_last_event(role: Role, launch: Launch, at: float) -> bool:
    """Say whether a death belongs to the event charged last; a launch made since does not."""
    # By time alone a crash loop with a short backoff would never be charged.
    return role.event_at is not None and abs(at - role.event_at) <= EVENT_S and launch.created_at <= role.event_at


def take_marker(book: Book, session: Session, now: float) -> bool:
    """Say whether a dead replica shows its role's marker; it takes it from higher slots."""
    role = book.role_of(session)
    if role is None:
        return True
    for other in [s for s in book.replicas(role.key) if s.state is State.CRASHED and s.id != session.id]:
        if other.index < session.index and other.hold == role.hold:  # replicas of one event have the same hold
            return False
        become(book, other, now, State.PENDING, other.why, hold=other.hold)
    return True


def steady_at(book: Book, role: Role) -> float | None:
    """Return when a role may be forgiven: its youngest live replica has been up long enough.

    None while one is in backoff, while none lives, or while one was given up and no other is on trial.
    """
    started: list[float | None] = []
    for session in book.replicas(role.key):
        reason = session.hold.reason if session.hold is not None else ""
        if reason == "backoff" or (reason == "saturated" and not _is_tried(book, role)):
            return None
        if session.state in ALIVE and session.launch is not None:
            started.append(session.launch.started_at)
    known = [at for at in started if at is not None]
    return max(known) + role.spec.spec.restart.reset_after_s if known and len(known) == len(started) else None


def _is_tried(book: Book, role: Role) -> bool:
    tried = book.sessions.get(role.trial or "")
    return tried is not None and tried.state in ALIVE


def forgive(book: Book, session: Session) -> Session:
    """Clear the charges of a session and of its role."""
    role = book.role_of(session)
    if role is not None:
        forgive_role(book, role)
    return book.keep(replace(session, charges=0))


def forgive_role(book: Book, role: Role) -> None:
    """Clear the charges of a role."""
    book.keep_role(replace(role, charges=0, event_at=None, hold=None, trial=None))


def stable(book: Book, session: Session, now: float) -> None:
    """Forgive a lone session whose launch has been up long enough."""
    started_at = session.launch.started_at if session.launch else None
    if session.state not in DOUBTED or started_at is None or session.role is not None or not session.charges:
        return
    stable_at = started_at + session.spec.restart.reset_after_s
    if session.state is not State.RUNNING:  # in doubt: ask again later
        stable_at = max(stable_at, now + AGAIN_S)
    if now < stable_at:
        book.do(SetTimer(session.id, TimerKind.STABLE, stable_at))
    else:
        forgive(book, session)


def steady(book: Book, role: Role, now: float) -> None:
    """Forgive a role whose youngest replica has been up long enough; replicas given up come back."""
    if not role.charges:
        return
    steady_from = steady_at(book, role)
    doubtful = any(session.state in DOUBTED and session.state is not State.RUNNING for session in book.replicas(role.key))
    if steady_from is None or doubtful or now < steady_from:
        book.do(SetTimer(role.key, TimerKind.STEADY, max(now + AGAIN_S, steady_from or 0.0)))
    else:
        forgive_role(book, role)
        _bring_back(book, role, now)


def retry_as_declared(book: Book, session: Session, role: Role, now: float) -> None:
    """Set the trial of a replica that was given up by its role's new policy."""
    if session.state is State.FAILED and is_saturated(session):
        retry_s = role.spec.retry_saturated_s
        until = (role.event_at or now) + retry_s if retry_s > 0 else None
        book.keep(replace(session, hold=Hold(HoldReason.SATURATED, until)))
        if until is not None:
            book.do(SetTimer(session.id, TimerKind.HOLD, until))


def _bring_back(book: Book, role: Role, now: float) -> None:
    """Relaunch the replicas given up: the trial of one went well."""
    for other in book.replicas(role.key):
        if other.state is State.FAILED and is_saturated(other) and other.hold is not None and other.hold.until is not None:
            book.log(now, other, "session.hold-over", hold="saturated")
            relaunch(book, other, now, by_policy=True)
