"""Walls: an agent meets a limit or a failed login, the wall's time ends, an agent gets past it (DESIGN 4.4)."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import SetTimer, TimerKind
from vigil.core.handlers.account import works
from vigil.core.handlers.launch import relaunch
from vigil.core.model.death import Cause, Wall
from vigil.core.model.reading import Axis
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import activity_facts
from vigil.core.rules.wall import read_wall

WALLS = {What.LIMIT: Cause.LIMIT, What.AUTH: Cause.AUTH}
TRIES = frozenset({What.PROMPT, What.TURN_STARTED})


def meet(book: Book, session: Session, met: Wall, now: float) -> Session:
    """Keep the wall that an agent met, and log it once."""
    before = session.wall
    if before is None or (before.launch_id, before.tries, before.cause) != (met.launch_id, met.tries, met.cause):
        data = {"until": met.until, "tries": met.tries, "why": met.text}
        book.log(now, session, f"session.{met.cause}", **data, **({"note": met.note} if met.note else {}))
    if met.until is not None:
        book.do(SetTimer(session.id, TimerKind.WALL, met.until))
    return replace(session, wall=met)


def at_wall(book: Book, session: Session, said: Said, at: float, now: float) -> Session:
    """Take in that an agent met a wall, or tries to get past one."""
    wall, launch = session.wall, session.launch
    if said.subagent or launch is None:
        return session
    if said.what in TRIES and wall is not None and at > wall.at:
        return replace(session, wall=replace(wall, tried=True))
    if said.what not in WALLS:
        return session
    met = read_wall(wall, launch.id, WALLS[said.what], said.text, said.until, at)
    return meet(book, session, met, now)


def wall_over(book: Book, session: Session, now: float) -> None:
    """Mark a wall whose time has come; only an agent past it proves it gone."""
    wall = session.wall
    if wall is not None and (wall.over or wall.until is None):
        return
    if wall is not None and wall.until is not None and now < wall.until:
        book.do(SetTimer(session.id, TimerKind.WALL, wall.until))
        return
    doing, reading = session.vitals.doing, session.vitals.axes.get(Axis.ACTIVITY)
    session = replace(session, wall=None if wall is None else replace(wall, over=True))
    if doing.held == What.LIMIT and reading is not None and session.launch is not None and session.launch.ended_at is None:
        doing = replace(doing, retries=False, held="", until=None)
        session = book.read_axes(session, activity_facts(session, doing, reading.source, now), doing=doing)
    book.keep(session)


def get_past(book: Book, session: Session, at: float, now: float) -> None:
    """When an agent got past a wall: relaunch the sessions that waited for it."""
    for other in works(book, book.sessions[session.id], at, now):
        book.log(now, other, "session.hold-over", hold=other.waits_for or "", why=f"{session.name} works")
        relaunch(book, other, now, by_policy=True)
