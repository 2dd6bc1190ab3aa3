"""Takeover: a new daemon goes on with what the last one left."""

from __future__ import annotations

from math import nextafter

from vigil.core.book import Book
from vigil.core.effects import CloseLaunch, SetTimer, Tell, TimerKind
from vigil.core.events import Resumed
from vigil.core.handlers import heartbeat, summary, watchdog
from vigil.core.handlers.hold import WAITING
from vigil.core.handlers.incident import plan_reaction
from vigil.core.handlers.intent import spares_people
from vigil.core.handlers.launch import COLD_START, relaunch
from vigil.core.handlers.transition import become
from vigil.core.model.incident import ReactionOutcome
from vigil.core.model.replace import replace
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.model.team import Role
from vigil.core.rules.liveness import leaves_its_pane, rested
from vigil.core.rules.notice import interrupted
from vigil.core.rules.restart import comes_back_by_itself
from vigil.core.rules.wall import LONGEST_S, REASONS

# What waits for no moment and no person is launched by a new daemon, or waits anew.
AT_ONCE = (None, HoldReason.PACE, HoldReason.MEMORY, HoldReason.KEEPER, HoldReason.SURVIVOR)


def resumed(book: Book, event: Resumed, now: float) -> None:
    """When a new daemon takes over: take up every stored session, wall, role and incident."""
    book.booted = event.booted
    book.void_before = now  # an agent that spoke while no daemon listened counts as heard now
    _date_back(book, now)
    stored = list(book.sessions.values())
    book.left = {s.launch.id for s in stored if s.state is State.STARTING and s.launch and s.launch.process is None}
    book.spawning |= book.left
    _take_up_incidents(book, now)
    for session in stored:
        _take_up_session(book, session, event.booted, now)
    book.reconsider(stored)
    for session_id in sorted(book.walled):
        _take_up_wall(book, book.sessions[session_id], now)
    for role in book.roles.values():
        _take_up_role(book, role, now)


def _date_back(book: Book, now: float) -> None:
    """At a takeover, move stored moments out of the future: clocks may be set back."""
    for session in list(book.sessions.values()):
        if max(session.last_activity_at or 0.0, session.asked_at or 0.0, *session.worked.values()) > now:
            book.keep(_as_of(session, now))
    for incident in list(book.incidents.values()):
        if incident.opened_at > now:
            book.keep_incident(replace(incident, opened_at=now))
    for incident in list(book.resolved.values()):
        if (incident.resolved_at or 0.0) > now:
            book.keep_incident(replace(incident, resolved_at=now, over_at=now))


def _take_up_session(book: Book, session: Session, booted: bool, now: float) -> None:
    """Take over a stored session: end what was ending, relaunch what may, watch the rest."""
    hold, failed = session.hold, session.state is State.FAILED
    waits = session.state in WAITING and (not failed or session.waits_for is HoldReason.SATURATED)
    if session.state is State.ENDING:
        book.end_all(session.launch, unless_attended=spares_people(session.vitals.intent))
    elif booted and waits and not failed and not comes_back_by_itself(book.role_of(session)):
        become(book, session, now, State.PENDING, COLD_START, hold=Hold(HoldReason.COLD_START, None))
    elif waits and session.waits_for in AT_ONCE:
        relaunch(book, session, now, by_policy=True)
    else:
        _close_launch(book, session, now)
        if waits and hold is not None and hold.until is not None:
            session = _shorten(book, session, hold.until, now)
            book.do(SetTimer(session.id, TimerKind.HOLD, session.hold.until if session.hold and session.hold.until else now))
        if session.vitals.doubt is not None:
            session = book.keep(with_vitals(session, doubt=rested(session.vitals.doubt, now)))
            book.do(SetTimer(session.id, TimerKind.LOOK, now))
        session = heartbeat.rest(book, session, now)
        watchdog.rest(book, session, now)


def _close_launch(book: Book, session: Session, now: float) -> None:
    """At a takeover, close a dead launch of the last daemon, or await its summary."""
    launch = session.launch
    if leaves_its_pane(session):
        summary.await_summary(book, session, now)
    elif launch is not None and launch.ended_at is not None and not launch.closed:
        book.do(CloseLaunch(launch))


def _take_up_role(book: Book, role: Role, now: float) -> None:
    if role.shift is not None:
        book.do(SetTimer(role.key, TimerKind.SHIFT, now))
    if role.charges:
        book.do(SetTimer(role.key, TimerKind.STEADY, now))


def _as_of(session: Session, now: float) -> Session:
    """Return a taken-over session without moments in the future, which would void new events."""
    active_at = None if session.last_activity_at is None else min(session.last_activity_at, now)
    worked = {kind: min(at, now) for kind, at in session.worked.items()}
    session = replace(session, last_activity_at=active_at, worked=worked)
    asked_at, wall = session.asked_at, session.wall
    if asked_at is None or asked_at <= now:
        return session
    met_since = wall is not None and wall.at > asked_at  # keep that order
    wall = None if wall is None else replace(wall, at=min(wall.at, now))
    return replace(session, wall=wall, asked_at=nextafter(now, 0.0) if met_since else now)


def _take_up_wall(book: Book, session: Session, now: float) -> None:
    """Take over a stored wall: wait as before, but never longer than any may stand."""
    wall = session.wall
    assert wall is not None
    until = wall.until if wall.until is None else min(wall.until, now + LONGEST_S)
    taken_up = replace(wall, at=min(wall.at, now), until=until)
    session = book.keep(replace(session, wall=taken_up), durable=taken_up != wall)
    if until is not None and not wall.over:
        book.do(SetTimer(session.id, TimerKind.WALL, until))


def _shorten(book: Book, session: Session, until: float, now: float) -> Session:
    """Cut a taken-over hold to its policy's longest: the clock may have been set back."""
    policy, role = session.spec.restart, book.role_of(session)
    longest_s = max(policy.cap_s, policy.base_s) * (1 + policy.jitter)
    if role is not None and session.state is State.FAILED:
        longest_s = role.spec.retry_saturated_s or longest_s
    if session.waits_for in REASONS:  # by the provider's clock
        longest_s = LONGEST_S
    if until - now <= longest_s or session.hold is None:
        return session
    return book.keep(replace(session, hold=replace(session.hold, until=now + longest_s)))


def _take_up_incidents(book: Book, now: float) -> None:
    """Take over stored incidents: tell them again; mark what the last daemon left under way."""
    for incident in (*book.incidents.values(), *book.resolved.values()):
        notices = tuple(interrupted(notice, now) for notice in incident.notices)
        words = "the daemon ended meanwhile"
        reactions = tuple(
            replace(one, outcome=ReactionOutcome.UNKNOWN, why=words) if one.outcome is ReactionOutcome.BEGUN else one
            for one in incident.reactions
        )
        if notices != incident.notices or reactions != incident.reactions:
            book.keep_incident(replace(incident, notices=notices, reactions=reactions))
    for incident in list(book.incidents.values()):
        plan_reaction(book, incident, now)
    for incident in (*book.incidents.values(), *book.resolved.values()):
        book.do(Tell(incident))
