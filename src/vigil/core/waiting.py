"""Waiting: holds that end, counts that are forgiven, and what a new daemon takes up again."""

from __future__ import annotations

from collections.abc import Callable
from math import nextafter

from vigil.core import hearing, incident_rules, incidents, pulses, reacting, recovering, shifts, summary, watching
from vigil.core.book import DOUBTED, Book
from vigil.core.changing import replace
from vigil.core.charging import forgive, forgive_role, steady_at
from vigil.core.doubting import look_again
from vigil.core.effects import CloseLaunch, SetTimer, Tell
from vigil.core.events import Resumed, TimerFired
from vigil.core.intents import spares_people
from vigil.core.launching import COLD_START, leaves_its_pane, relaunch, still_short
from vigil.core.limits import LONGEST_S, REASONS
from vigil.core.liveness import rested
from vigil.core.model import ALIVE, Hold, Session, State
from vigil.core.restart import comes_back_by_itself, is_saturated
from vigil.core.roles import Role
from vigil.core.transition import become

AGAIN_S = 60.0
UNDECIDED = ALIVE | {State.CRASHED, State.PENDING}
WAITING = frozenset({State.CRASHED, State.PENDING, State.FAILED})  # one that failed waits only for its trial


def timer_fired(book: Book, event: TimerFired, now: float) -> None:
    """A moment that was asked for has come; it may have come early, or for nothing."""
    session, role = book.sessions.get(event.session_id), book.roles.get(event.session_id)
    if session is not None:
        TIMERS[event.kind](book, session, now)
    elif role is not None:
        ROLE_TIMERS[event.kind](book, role, now)
    elif event.kind == "react":
        reacting.react(book, event.session_id, now)


def hold_over(book: Book, session: Session, now: float) -> None:
    """Launch again when the wait is really over."""
    hold = session.hold
    if hold is None or hold.until is None or session.state not in WAITING:
        return
    if now < hold.until:
        book.do(SetTimer(session.id, "hold", hold.until))
    elif session.state is State.FAILED and (later := _after_the_trial(book, session, now)) is not None:
        book.keep(replace(session, hold=replace(hold, until=later)))
        book.do(SetTimer(session.id, "hold", later))
    else:
        book.log(now, session, "session.hold-over", hold=hold.reason)
        relaunch(book, session, now, by_policy=True)


def _after_the_trial(book: Book, session: Session, now: float) -> float | None:
    """Return when a replica that was given up may be tried, if another one of its role is tried now; else it is the one."""
    role = book.role_of(session)
    if role is None:
        return None
    next_at = (role.event_at or 0.0) + role.spec.retry_saturated_s
    if now < next_at:  # another one was tried since, and died: one trial in that time is for the whole role
        return next_at
    tried = book.sessions.get(role.trial or "")
    if tried is not None and tried.id != session.id and tried.state in UNDECIDED:
        return now + role.spec.retry_saturated_s
    book.keep_role(replace(role, trial=session.id))
    return None


def stable(book: Book, session: Session, now: float) -> None:
    """Forgive the charges of a lone session whose launch has been up long enough."""
    started_at = session.launch.started_at if session.launch else None
    if session.state not in DOUBTED or started_at is None or session.role is not None or not session.charges:
        return
    stable_at = started_at + session.spec.restart.reset_after_s
    if session.state is not State.RUNNING:  # whether it is up is in doubt: that is asked again
        stable_at = max(stable_at, now + AGAIN_S)
    if now < stable_at:
        book.do(SetTimer(session.id, "stable", stable_at))
    else:
        forgive(book, session)


def steady(book: Book, role: Role, now: float) -> None:
    """Forgive the charges of a role when its youngest replica has been up long enough; those that were given up come back."""
    if not role.charges:
        return
    steady_from = steady_at(book, role)
    doubtful = any(session.state in DOUBTED and session.state is not State.RUNNING for session in book.replicas(role.key))
    if steady_from is None or doubtful or now < steady_from:
        book.do(SetTimer(role.key, "steady", max(now + AGAIN_S, steady_from or 0.0)))
    else:
        forgive_role(book, role)
        _bring_back(book, role, now)


def retry_as_declared(book: Book, session: Session, role: Role, now: float) -> None:
    """Let a replica that was given up wait for its trial as its role says now."""
    if session.state is State.FAILED and is_saturated(session):
        retry_s = role.spec.retry_saturated_s
        until = (role.event_at or now) + retry_s if retry_s > 0 else None
        book.keep(replace(session, hold=Hold("saturated", until)))
        if until is not None:
            book.do(SetTimer(session.id, "hold", until))


def _bring_back(book: Book, role: Role, now: float) -> None:
    """A trial went well: those of its role that were given up come back too."""
    for other in book.replicas(role.key):
        if other.state is State.FAILED and is_saturated(other) and other.hold is not None and other.hold.until is not None:
            book.log(now, other, "session.hold-over", hold="saturated")
            relaunch(book, other, now, by_policy=True)


def resumed(book: Book, event: Resumed, now: float) -> None:
    """Take up what was under way; live launches speak for themselves in events of their own."""
    book.booted = event.booted
    book.void_before = now  # what was said while nobody listened is not older than that
    for session in [
        s for s in book.sessions.values() if max(s.last_activity_at or 0.0, s.asked_at or 0.0, *s.worked.values()) > now
    ]:
        book.keep(_as_of(session, now))  # the clock was set back
    stored = list(book.sessions.values())
    book.spawning |= {s.launch.id for s in stored if s.state is State.STARTING and s.launch and s.launch.process is None}
    for incident in [incident for incident in book.incidents.values() if incident.opened_at > now]:
        book.keep_incident(replace(incident, opened_at=now))  # the clock was set back: nobody waits for a moment long past
    incidents.take_up(book, now)
    for incident in (*book.incidents.values(), *book.resolved.values()):
        book.do(Tell(incident))
    for session in stored:
        incident_rules.follow(book, session, now)
        launch, hold = session.launch, session.hold
        waits = session.state in WAITING and (session.state is not State.FAILED or is_saturated(session))
        if session.state is State.ENDING:
            book.end_all(launch, unless_attended=spares_people(session.intent))
        elif event.booted and waits and session.state is not State.FAILED and not comes_back_by_itself(book.role_of(session)):
            become(book, session, now, State.PENDING, COLD_START, hold=Hold("cold-start", None))
        elif waits and (hold is None or hold.reason in ("pace", "memory", "survivor")):
            relaunch(book, session, now, by_policy=True)
        else:
            if launch is not None and launch.ended_at is not None and not launch.closed and not leaves_its_pane(session):
                book.do(CloseLaunch(launch))
            elif leaves_its_pane(session):
                summary.await_summary(book, session, now)
            if waits and hold is not None and hold.until is not None:
                session = _shorten(book, session, hold.until, now)
                book.do(SetTimer(session.id, "hold", session.hold.until if session.hold and session.hold.until else now))
            if session.doubt is not None:
                session = book.keep(replace(session, doubt=rested(session.doubt, now)))
                book.do(SetTimer(session.id, "look", now))
            session = pulses.rest(book, session, now)
            watching.rest(book, session, now)
    for session_id in sorted(book.walled):
        _take_up_wall(book, book.sessions[session_id], now)
    for role in book.roles.values():
        if role.shift is not None:
            book.do(SetTimer(role.key, "shift", now))
        if role.charges:
            book.do(SetTimer(role.key, "steady", now))


def _as_of(session: Session, now: float) -> Session:
    """Let nothing that befell a session be in the future: what does from now on would count for nothing until then."""
    active_at = None if session.last_activity_at is None else min(session.last_activity_at, now)
    worked = {kind: min(at, now) for kind, at in session.worked.items()}
    session = replace(session, last_activity_at=active_at, worked=worked)
    asked_at, wall = session.asked_at, session.wall
    if asked_at is None or asked_at <= now:
        return session
    met_since = wall is not None and wall.at > asked_at  # and stays so
    wall = None if wall is None else replace(wall, at=min(wall.at, now))
    return replace(session, wall=wall, asked_at=nextafter(now, 0.0) if met_since else now)


def _take_up_wall(book: Book, session: Session, now: float) -> None:
    """Wait for a wall as before; a clock that was set back makes none older, nor let it stand for longer than any does."""
    wall = session.wall
    assert wall is not None
    until = wall.until if wall.until is None else min(wall.until, now + LONGEST_S)
    taken_up = replace(wall, at=min(wall.at, now), until=until)
    session = book.keep(replace(session, wall=taken_up), durable=taken_up != wall)
    if until is not None and not wall.over:
        book.do(SetTimer(session.id, "wall", until))


def _shorten(book: Book, session: Session, until: float, now: float) -> Session:
    """Let a wait be no longer than any its policy knows: the clock may have been set back while the host was off."""
    policy, role = session.spec.restart, book.role_of(session)
    longest_s = max(policy.cap_s, policy.base_s) * (1 + policy.jitter)
    if role is not None and session.state is State.FAILED:
        longest_s = role.spec.retry_saturated_s or longest_s
    if session.hold is not None and session.hold.reason in REASONS:  # a moment of somebody else's clock
        longest_s = LONGEST_S
    if until - now <= longest_s or session.hold is None:
        return session
    return book.keep(replace(session, hold=replace(session.hold, until=now + longest_s)))


TIMERS: dict[str, Callable[[Book, Session, float], None]] = {
    "hold": hold_over,
    "stable": stable,
    "look": look_again,
    "incidents": incident_rules.follow,
    "pulse": pulses.check,
    "drain": shifts.drain_timer,
    "silence": watching.check,
    recovering.PEOPLE: watching.see_people,
    "memory": still_short,
    "wall": hearing.wall_over,
    summary.TIMER: summary.timer,
}
ROLE_TIMERS: dict[str, Callable[[Book, Role, float], None]] = {"shift": shifts.shift_timer, "steady": steady}
