"""Holds: a wait that is over lets its session launch again."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import SetTimer, TimerKind
from vigil.core.handlers.launch import relaunch
from vigil.core.model.replace import replace
from vigil.core.model.session import ALIVE, Session, State

UNDECIDED = ALIVE | {State.CRASHED, State.PENDING}
WAITING = frozenset({State.CRASHED, State.PENDING, State.FAILED})  # a failed one waits only for its trial


def hold_over(book: Book, session: Session, now: float) -> None:
    """When a hold's time is up: launch its session, unless another trial goes first."""
    hold = session.hold
    if hold is None or hold.until is None or session.state not in WAITING:
        return
    if now < hold.until:
        book.do(SetTimer(session.id, TimerKind.HOLD, hold.until))
    elif session.state is State.FAILED and (later := _after_the_trial(book, session, now)) is not None:
        book.keep(replace(session, hold=replace(hold, until=later)))
        book.do(SetTimer(session.id, TimerKind.HOLD, later))
    else:
        book.log(now, session, "session.hold-over", hold=hold.reason)
        relaunch(book, session, now, by_policy=True)


def _after_the_trial(book: Book, session: Session, now: float) -> float | None:
    """Return until when another's trial extends a replica's hold; None lets it be tried."""
    role = book.role_of(session)
    if role is None:
        return None
    next_at = (role.event_at or 0.0) + role.spec.retry_saturated_s
    if now < next_at:  # another one's trial failed since: a role has one trial in that time
        return next_at
    tried = book.sessions.get(role.trial or "")
    if tried is not None and tried.id != session.id and tried.state in UNDECIDED:
        return now + role.spec.retry_saturated_s
    book.keep_role(replace(role, trial=session.id))
    return None
