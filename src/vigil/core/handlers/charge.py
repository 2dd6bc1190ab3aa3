"""Charges: one event is one charge, to a lone session or a role; its lowest slot shows `crashed` (DESIGN 4.3, 4.4)."""

from __future__ import annotations

from vigil.core.book import DOUBTED, Book
from vigil.core.effects import SetTimer, TimerKind
from vigil.core.handlers.launch import relaunch
from vigil.core.handlers.transition import become
from vigil.core.model.death import Death
from vigil.core.model.launch import Launch
from vigil.core.model.replace import replace
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.team import Role
from vigil.core.rules.restart import charge, delay_s, jitter_of, uncharged

DEATHS_KEPT = 5  # an incident lists these
EVENT_S = 1.0  # deaths of a role within this of the first are one event
AGAIN_S = 60.0


def charge_death(
    book: Book, session: Session, launch: Launch, death: Death, resets_at: float | None, ours: bool = False
) -> tuple[int, Hold]:
    """Charge a death to its session or role; return the new count and hold. Vigil's own failure costs nothing (P15)."""
    cause, at = death.cause, death.at
    policy, jitter, role = session.spec.restart, jitter_of(launch.id), book.role_of(session)
    if ours:
        return session.charges if role is None else role.charges, uncharged(at, policy)
    if role is None:
        return charge(cause, at, session.charges, death.uptime_s or 0.0, policy, jitter, resets_at)
    if death.charged:
        role = book.keep_role(replace(role, deaths=(*role.deaths, death.id)[-DEATHS_KEPT:]))
        if role.hold is not None and _is_of_last_event(role, launch, at):
            book.keep_role(replace(role, taken=(*role.taken, launch.id)))
            return role.charges, _hold_of_event(role.hold, at + delay_s(role.charges, policy, jitter))
    steady = steady_at(book, role)
    before = 0 if steady is not None and at >= steady else role.charges
    count, hold = charge(cause, at, before, 0.0, policy, jitter, resets_at)
    if hold.reason == HoldReason.SATURATED and role.spec.retry_saturated_s > 0:
        hold = replace(hold, until=at + role.spec.retry_saturated_s)
    if death.charged:
        book.keep_role(replace(role, charges=count, event_at=at, taken=(launch.id,), hold=hold))
        book.do(SetTimer(role.key, TimerKind.STEADY, at + policy.reset_after_s))
    elif count != role.charges:
        book.keep_role(replace(role, charges=count))
    return count, hold


def _hold_of_event(hold: Hold, until: float) -> Hold:
    """Return what a later death of a charged event waits for: as long as the first, from its own moment."""
    # By the first's moment alone, with a base of 0.3 s one came back 13 ms after its death.
    return replace(hold, until=until) if hold.reason == HoldReason.BACKOFF else hold


def _is_of_last_event(role: Role, launch: Launch, at: float) -> bool:
    """Say whether a death belongs to the event charged last; a later launch's does not."""
    # By time alone a crash loop with a short backoff would never be charged.
    return role.event_at is not None and abs(at - role.event_at) <= EVENT_S and launch.created_at <= role.event_at


def take_marker(book: Book, session: Session, now: float) -> bool:
    """Say whether a dead replica shows its role's charge as `crashed`; higher slots lose that."""
    role = book.role_of(session)
    if role is None:
        return True
    for other in [s for s in book.replicas(role.key) if s.state is State.CRASHED and s.id != session.id]:
        if other.index < session.index and other.launch is not None and other.launch.id in role.taken:
            return False
        become(book, other, now, State.PENDING, other.why, hold=other.hold)
    return True


def steady_at(book: Book, role: Role) -> float | None:
    """Return when a role's charges may go: its youngest live replica is up long enough.

    None while one is in backoff, while none lives, or while one was given up and no other is on trial."""
    tried = book.sessions.get(role.trial or "")
    is_tried = tried is not None and tried.state in ALIVE
    started: list[float | None] = []
    for session in book.replicas(role.key):
        given_up = session.waits_for is HoldReason.SATURATED and not is_tried
        if session.waits_for is HoldReason.BACKOFF or given_up:
            return None
        if session.state in ALIVE and session.launch is not None:
            started.append(session.launch.started_at)
    known = [at for at in started if at is not None]
    return max(known) + role.spec.spec.restart.reset_after_s if known and len(known) == len(started) else None


def forgive(book: Book, session: Session) -> Session:
    """Clear the charges of a session and of its role."""
    role = book.role_of(session)
    if role is not None:
        forgive_role(book, role)
    return book.keep(replace(session, charges=0))


def forgive_role(book: Book, role: Role) -> None:
    book.keep_role(replace(role, charges=0, event_at=None, taken=(), hold=None, trial=None))


def stable(book: Book, session: Session, now: float) -> None:
    """When a lone session has been up long enough: clear its charges."""
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
    """When a role has been up long enough: clear its charges, retry given-up replicas."""
    if not role.charges:
        return
    steady_from = steady_at(book, role)
    doubtful = any(session.state in DOUBTED and session.state is not State.RUNNING for session in book.replicas(role.key))
    if steady_from is None or doubtful or now < steady_from:
        book.do(SetTimer(role.key, TimerKind.STEADY, max(now + AGAIN_S, steady_from or 0.0)))
    else:
        forgive_role(book, role)
        for other in book.replicas(role.key):  # the trial of one went well
            retried = other.hold is not None and other.hold.until is not None
            if other.state is State.FAILED and other.waits_for is HoldReason.SATURATED and retried:
                book.log(now, other, "session.hold-over", hold="saturated")
                relaunch(book, other, now, by_policy=True)


def retry_as_declared(book: Book, session: Session, role: Role, now: float) -> None:
    """When a role's policy changes: set the trial of a replica that charges gave up."""
    if session.state is State.FAILED and session.waits_for is HoldReason.SATURATED:
        retry_s = role.spec.retry_saturated_s
        until = (role.event_at or now) + retry_s if retry_s > 0 else None
        book.keep(replace(session, hold=Hold(HoldReason.SATURATED, until)))
        if until is not None:
            book.do(SetTimer(session.id, TimerKind.HOLD, until))
