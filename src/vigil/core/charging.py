"""Charging: whose count a death goes to: a lone session's own, or its role's, where one event is one charge (DESIGN 4.4).

It also decides who of a role shows the marker `crashed`: the lowest slot of those that one event took, never two (DESIGN 4.3).
"""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.changing import replace
from vigil.core.effects import SetTimer
from vigil.core.model import ALIVE, Death, Hold, Launch, Session, State
from vigil.core.restart import charge, jitter_of
from vigil.core.roles import Role
from vigil.core.transition import become

DEATHS_KEPT = 5  # of which an incident tells
EVENT_S = 1.0  # deaths of a role within this of the first are one event


def charge_death(book: Book, session: Session, launch: Launch, death: Death, resets_at: float | None) -> tuple[int, Hold]:
    """Charge a death to whom it belongs; return the new count, and what the replacement waits for."""
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
    if hold.reason == "saturated" and role.spec.retry_saturated_s > 0:
        hold = replace(hold, until=at + role.spec.retry_saturated_s)
    if death.charged:
        book.keep_role(replace(role, charges=count, event_at=at, hold=hold))
        book.do(SetTimer(role.key, "steady", at + policy.reset_after_s))
    elif count != role.charges:
        book.keep_role(replace(role, charges=count))
    return count, hold


def _is_of_last_event(role: Role, launch: Launch, at: float) -> bool:
    """Say whether a death is part of the event that was charged last; who was launched after it began is not."""
    return role.event_at is not None and abs(at - role.event_at) <= EVENT_S and launch.created_at <= role.event_at


def take_marker(book: Book, session: Session, now: float) -> bool:
    """Say whether a dead replica shows its role's marker; whoever had it, and should not any more, only waits."""
    role = book.role_of(session)
    if role is None:
        return True
    for other in [s for s in book.replicas(role.key) if s.state is State.CRASHED and s.id != session.id]:
        if other.index < session.index and other.hold == role.hold:  # those of one event wait for the very same
            return False
        become(book, other, now, State.PENDING, other.why, hold=other.hold)
    return True


def steady_at(book: Book, role: Role) -> float | None:
    """Return when a role has been up long enough to be forgiven: its youngest live replica decides.

    None while one is in backoff, while none lives, and while one was given up, unless it is another one of those that is tried.
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
    """Let nothing stand against a session any more, nor against its role."""
    role = book.role_of(session)
    if role is not None:
        forgive_role(book, role)
    return book.keep(replace(session, charges=0))


def forgive_role(book: Book, role: Role) -> None:
    """Let nothing stand against a role any more."""
    book.keep_role(replace(role, charges=0, event_at=None, hold=None, trial=None))
