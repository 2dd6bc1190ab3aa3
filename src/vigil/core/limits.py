"""Limits: walls that agents meet, a limit of their account or a login that failed, and who waits for them (DESIGN 4.4).

Pure. A wall is kept with the session that met it. Until it is gone nobody of the same account is launched by policy: a fleet
meets it once. It is gone when an agent of that account, tried since, works; when its moment has come, one is tried. A person's
word does not wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from vigil.core.book import Book
from vigil.core.changing import replace
from vigil.core.effects import SetTimer
from vigil.core.model import ALIVE, Cause, Session, State, Wall
from vigil.core.restart import HELD, LIMIT_S

LONGEST_S = 7 * 86400.0  # the longest limits are weekly: what lies beyond was misread
LIMIT_CAP_S = 6 * 3600.0  # a limit that does not say when it ends is tried again ever more rarely, up to this
PASSED_S = 60.0  # one that says a moment that has passed is tried again so soon at first
SLACK_S = 3600.0  # clocks differ, also by a change to summer time
ASIDE_S = 60.0  # who works so long after another one met a wall was not answered before that
TRIAL_S = 120.0  # so long one that is launched after a wall is gone is waited for, before another one is
REASONS = frozenset(cause.value for cause in HELD)
WAITING = frozenset({State.CRASHED, State.PENDING})


def read_wall(before: Wall | None, launch_id: str, cause: Cause, text: str, until: float | None, at: float) -> Wall:
    """Return the wall that a word tells of; one word of many about the same adds nothing but what it knows better."""
    if before is not None and before.cause is cause and before.launch_id == launch_id and stands(before, at):
        return replace(before, text=text or before.text, at=max(at, before.at), until=_nearer(before, until, at))
    tries = 1 if before is None or before.cause is not cause else before.tries + 1
    found, note = bounded(cause, until, at, tries)
    return Wall(cause, text, at, launch_id, found, tries, note)


def _nearer(before: Wall, until: float | None, at: float) -> float | None:
    """Return until when a wall stands, that another word was said about: one that names a moment knows better."""
    if until is None or before.until is None:
        return before.until
    found, note = bounded(before.cause, until, at, before.tries)
    return before.until if note else found


def bounded(cause: Cause, until: float | None, at: float, tries: int) -> tuple[float | None, str]:
    """Return when a wall that was met so often in a row is tried again, and what is wrong with what was said of it."""
    if cause is Cause.AUTH:
        return None, ""
    steps = min(tries - 1, 16)
    if until is None:
        return at + min(LIMIT_S * 2**steps, LIMIT_CAP_S), "it does not say until when"
    if until > at + LONGEST_S + SLACK_S:
        return at + min(LIMIT_S * 2**steps, LIMIT_CAP_S), "what it says of its end is too far away"
    if until <= at:
        return at + min(PASSED_S * 2**steps, LIMIT_S), "what it says of its end has passed"
    return until, ""


def meet(book: Book, session: Session, met: Wall, now: float) -> Session:
    """Keep the wall that an agent met; that it met one is said once, however often it says so."""
    before = session.wall
    if before is None or (before.launch_id, before.tries, before.cause) != (met.launch_id, met.tries, met.cause):
        data = {"until": met.until, "tries": met.tries, "why": met.text}
        book.log(now, session, f"session.{met.cause}", **data, **({"note": met.note} if met.note else {}))
    if met.until is not None:
        book.do(SetTimer(session.id, "wall", met.until))
    return replace(session, wall=met)


def stands(wall: Wall, now: float) -> bool:
    """Say whether a wall is still there, as far as it says itself."""
    return not wall.over and (wall.until is None or now < wall.until)


def is_held(session: Session) -> bool:
    """Say whether the next launch of a session waits for a wall to be gone."""
    return session.hold is not None and session.hold.reason in REASONS


def met_by(book: Book, session: Session, now: float) -> tuple[Session, float | None] | None:
    """Return who met the wall that the next launch of a session waits for, and until when; None if it may be launched."""
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
    """Return until when another one is waited for that is tried now that a wall should be gone; None if there is none."""
    tried = [
        other.launch.created_at + TRIAL_S
        for other in _of_account(book, session)
        if other.id != session.id and other.state in ALIVE and other.launch is not None and other.launch.created_at > wall.at
    ]
    return max((at for at in tried if now < at), default=None)


def works(book: Book, session: Session, at: float, now: float) -> list[Session]:
    """An agent works: what its account met before is gone, if it was tried since. Return who waited for that.

    Whoever has worked all along does not say that it is gone, but that it is no wall for all: a limit of one model, the login
    of one project. Then only those who met it wait for it.
    """
    launched_at = session.launch.created_at if session.launch is not None else 0.0
    past = session.wall is not None
    changed = False
    for other in list(_walled(book, session)):
        wall = other.wall
        assert wall is not None
        if wall.at < at and (past or launched_at > wall.at):
            changed = bool(book.keep(replace(other, wall=None)))
        elif wall.at + ASIDE_S < at and not wall.own:
            changed = bool(book.keep(replace(other, wall=replace(wall, own=True))))
    waited = _released(book, session) if changed else []
    return [other for other in waited if met_by(book, other, now) is None]


def forgotten(book: Book, session: Session) -> list[Session]:
    """Return who waited for a wall that only a session had met that is no more."""
    if session.wall is None or any(_walled(book, session)):
        return []
    return _released(book, session)


def _released(book: Book, session: Session) -> list[Session]:
    return [other for other in _of_account(book, session) if other.state in WAITING and is_held(other)]


def _walled(book: Book, session: Session) -> Iterator[Session]:
    """Yield those of a session's account that have met a wall which is one for all of them, and itself."""
    for session_id in sorted(book.walled):
        other = book.sessions[session_id]
        shared = session.account and other.account == session.account and other.wall is not None and not other.wall.own
        if other.id == session.id or shared:
            yield other


def _of_account(book: Book, session: Session) -> list[Session]:
    """Return the sessions of an account; without one, a session is alone."""
    if not session.account:
        return [book.sessions[session.id]] if session.id in book.sessions else []
    return [other for other in book.sessions.values() if other.account == session.account]
