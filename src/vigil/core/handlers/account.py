"""Accounts: policy launches no session of an account whose wall stands, so a fleet meets it once (DESIGN 4.4).

An agent launched since that works proves the wall gone; once its time is up, one is tried. A person's command does not wait."""

from __future__ import annotations

from collections.abc import Iterator

from vigil.core.book import Book
from vigil.core.model.death import Wall
from vigil.core.model.replace import replace
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.rules.wall import REASONS, stands

ASIDE_S = 60.0  # an agent that still works so long after proves that the wall is not for all
TRIAL_S = 120.0  # so long the others wait for the first that tries
WAITS_FOR_WALL = frozenset({State.CRASHED, State.PENDING})


def met_by(book: Book, session: Session, now: float) -> tuple[Session, float | None] | None:
    """Find which of an account's sessions met a standing wall, and until when, or None."""
    asked_at = session.asked_at or 0.0
    found: list[tuple[float, str, Session, float | None]] = []
    for other in _walled(book, session):
        wall = other.wall
        assert wall is not None
        if wall.at <= asked_at:
            continue
        until = wall.until if stands(wall, now) else _tried_until(book, session, wall, now)
        if stands(wall, now) or until is not None:
            found.append((float("inf") if until is None else until, other.id, other, until))
    if not found:
        return None
    _, _, other, until = max(found, key=lambda one: one[:2])
    return other, until


def _tried_until(book: Book, session: Session, wall: Wall, now: float) -> float | None:
    """Return until when a launch waits for its account's session that tries an expired wall."""
    tried = [
        other.launch.created_at + TRIAL_S
        for other in _of_account(book, session)
        if other.id != session.id and other.state in ALIVE and other.launch is not None and other.launch.created_at > wall.at
    ]
    return max((at for at in tried if now < at), default=None)


def works(book: Book, session: Session, at: float, now: float) -> list[Session]:
    """Clear the walls of an account that a working agent proves gone; return who waited.

    If it worked all along, the wall is only that of those who met it: one model's limit, one project's login."""
    launched_at = session.launch.created_at if session.launch is not None else 0.0
    past = session.wall is not None
    changed = False
    for other in list(_walled(book, session)):
        wall = other.wall
        assert wall is not None
        if wall.at < at and (past or launched_at > wall.at):
            book.keep(replace(other, wall=None))
            changed = True
        elif wall.at + ASIDE_S < at and not wall.own:
            book.keep(replace(other, wall=replace(wall, own=True)))
            changed = True
    waited = _released(book, session) if changed else []
    return [other for other in waited if met_by(book, other, now) is None]


def forgotten(book: Book, session: Session) -> list[Session]:
    """When a session is removed: return those of its account that only its wall held."""
    if session.wall is None or any(_walled(book, session)):
        return []
    return _released(book, session)


def _released(book: Book, session: Session) -> list[Session]:
    return [other for other in _of_account(book, session) if other.state in WAITS_FOR_WALL and other.waits_for in REASONS]


def _walled(book: Book, session: Session) -> Iterator[Session]:
    """Yield the session itself and those of its account whose wall holds for all."""
    for session_id in sorted(book.walled):
        other = book.sessions[session_id]
        shared = session.account and other.account == session.account and other.wall is not None and not other.wall.own
        if other.id == session.id or shared:
            yield other


def _of_account(book: Book, session: Session) -> list[Session]:
    """Return the book's sessions of an account; a session without one is alone."""
    if not session.account:
        return [book.sessions[session.id]] if session.id in book.sessions else []
    return [other for other in book.sessions.values() if other.account == session.account]
