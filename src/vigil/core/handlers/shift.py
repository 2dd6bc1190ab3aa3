"""Shifts: a role's new replicas are ready before its old ones drain, one role of a team after another.

Every phase ends: by success, timeout, a new replica's death, or a person. Then there are as many replicas as before."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice

from vigil.core.book import GRACE_S, Book
from vigil.core.effects import EndLaunch, Interrupt, SetTimer, TimerKind
from vigil.core.events import ShiftAborted, ShiftAsked
from vigil.core.handlers.end import remove
from vigil.core.handlers.intent import intend
from vigil.core.handlers.replica import create, respecify
from vigil.core.handlers.transition import become
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.reading import Axis
from vigil.core.model.replace import replace
from vigil.core.model.restart import After
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.speech import Activity
from vigil.core.model.team import Phase, Role, Shift, Shifted
from vigil.core.rules.death import EARLY_S
from vigil.core.rules.plan import is_leaving, is_same

TICK_S = 1.0
DRAINS = 4  # old replicas that drain at once
SETTLED_S = EARLY_S  # a replica that never speaks is ready once it outlives an early exit
KEPT = frozenset({State.STOPPED, State.SUCCEEDED, State.PARKED})  # they keep their slots
PLAIN = frozenset({State.STARTING, State.RUNNING})  # a shift leaves a doubtful replica alone (P2)
QUIET = frozenset({Activity.IDLE, Activity.WAITING_HUMAN, Activity.WAITING_TIMER})  # an interrupt would only disturb these


def shift_asked(book: Book, event: ShiftAsked, now: float) -> None:
    """Put the roles of a shift in line; the first begins at once."""
    roles = [role for key in event.roles if (role := book.roles.get(key)) is not None and role.shift is None]
    for place, role in enumerate(roles):
        book.keep_role(replace(role, shift=Shift(place, len(roles), event.actor, event.timeout_s)))
        book.touched.add(role.key)
    book.log(now, None, "shift.asked", roles=[role.key for role in roles], actor=event.actor)


def shift_aborted(book: Book, event: ShiftAborted, now: float) -> None:
    for key in event.roles:
        role = book.roles.get(key)
        if role is not None and role.shift is not None and role.shift.phase is not Phase.WAITING:
            give_up(book, role, f"aborted by {event.actor}", now)
    for key in event.roles:  # none was under way
        role = book.roles.get(key)
        if role is not None and role.shift is not None:
            _over(book, role, now, False, f"aborted by {event.actor} before it began")


def shift_timer(book: Book, role: Role, now: float) -> None:
    if role.shift is not None:
        advance(book, role, now)


def advance(book: Book, role: Role, now: float) -> None:
    """Take a shift as far as it can go now."""
    assert role.shift is not None
    PHASES[role.shift.phase](book, role, role.shift, now)
    after = book.roles.get(role.key)
    if after is not None and after.shift is not None and after.shift.phase is not Phase.WAITING:
        book.do(SetTimer(role.key, TimerKind.SHIFT, now + TICK_S))


def _begin(book: Book, role: Role, shift: Shift, now: float) -> None:
    """Begin a role's shift in its turn: launch its new replicas."""
    if any(other.shift is not None and other.shift.place < shift.place for other in _team_of(book, role)):
        return
    there = {session.index: session for session in book.replicas(role.key)}
    old = tuple(
        index for index in role.slots if index in there and there[index].state not in KEPT and not is_leaving(there[index])
    )
    free = (index for index in count() if index not in there and index not in role.slots)
    shift = replace(shift, phase=Phase.LAUNCHING, until=now + shift.timeout_s, old=old, new=tuple(islice(free, len(old))))
    role = book.keep_role(replace(role, shift=shift))
    book.log(now, None, "shift.begun", role=role.key, old=list(old), new=list(shift.new))
    for index in shift.new:
        create(book, book.roles[role.key], index, shift.actor, now)
    if not old:
        _finish(book, role, shift, "nothing of it is to be replaced", now)


def _launch(book: Book, role: Role, shift: Shift, now: float) -> None:
    """Wait until each new replica of a shift is ready; deaths and timeouts end it."""
    new = _at(book, role, shift.new)
    waits = [f"{session.name} {why}" for session in new if (why := why_not_ready(session, role, now))]
    until = shift.until
    assert until is not None
    if (dead := _first_dead(new)) is not None:
        give_up(book, role, f"{dead.name} did not stay up: {dead.why}", now)
    elif len(new) == len(shift.new) and not waits:
        kept = tuple(index for index in role.slots if index not in shift.old)
        shift = replace(shift, phase=Phase.DRAINING, until=now + shift.timeout_s)
        role = book.keep_role(replace(role, slots=tuple(sorted(kept + shift.new)), shift=shift))
        book.log(now, None, "shift.ready", role=role.key, new=[session.name for session in new])
        _drain(book, role, shift, now)
    elif now >= until:
        give_up(book, role, f"not ready within {shift.timeout_s:g} s: {'; '.join(waits) or 'a slot is not free'}", now)


def _drain(book: Book, role: Role, shift: Shift, now: float) -> None:
    """Drain a shift's old replicas, the oldest first; name those still there at the timeout."""
    old = _at(book, role, shift.old)
    assert shift.until is not None
    if (dead := _first_dead(_at(book, role, shift.new))) is not None and old:
        give_up(book, role, f"{dead.name} did not stay up: {dead.why}", now)
    elif not old:
        _finish(book, role, shift, "every replica is a new one", now)
    elif now >= shift.until:
        _finish(book, role, shift, f"not drained yet: {', '.join(session.name for session in old)}", now)
    else:
        going = [session for session in old if is_leaving(session)]
        staying = sorted((session for session in old if not is_leaving(session)), key=lambda s: (s.created_at, s.index))
        for session in staying[: max(0, DRAINS - len(going))]:
            drain(book, session, shift.actor, "its replacement is ready", now)


PHASES: dict[Phase, Callable[[Book, Role, Shift, float], None]] = {
    Phase.WAITING: _begin,
    Phase.LAUNCHING: _launch,
    Phase.DRAINING: _drain,
}


def why_not_ready(session: Session, role: Role, now: float) -> str:
    """Return what a shift's new replica owes, say a sign of life; empty if ready."""
    launch = session.launch
    if session.state in KEPT:
        return ""
    if session.state is not State.RUNNING or launch is None or launch.started_at is None:
        return f"is {session.state}" + (f" ({session.hold.reason})" if session.hold is not None else "")
    if session.last_activity_at is not None and session.last_activity_at >= launch.started_at:
        return ""
    if role.spec.speaks or role.spec.health is not None:
        return "has not said anything yet"
    return "" if now - launch.started_at >= SETTLED_S else "has only just started"


def _first_dead(sessions: list[Session]) -> Session | None:
    """Return a replica that died by itself; it ends the shift."""
    return next((s for s in sessions if s.state not in ALIVE and s.last_death is not None and s.last_death.charged), None)


def drain(book: Book, session: Session, actor: str, reason: str, now: float) -> None:
    """Have a replica of a shift leave: interrupted if busy, after its grace, unattended (P2)."""
    launch = session.launch
    if launch is None:
        remove(book, session, now)
    elif session.state not in ALIVE:
        intent = intend(book, session, IntentVerb.SHIFT, Cause.POLICY, actor, reason, now)
        become(book, session, now, State.ENDING, f"being removed: {reason}", hold=None, after=After.REMOVE, intent=intent)
        book.end_all(launch, unless_attended=True)  # a person may look at what a dead agent left
    elif not session.vitals.attached and session.state in PLAIN:
        intent = intend(book, session, IntentVerb.SHIFT, Cause.POLICY, actor, reason, now)
        words = f"asked to leave: {reason}"
        become(book, session, now, State.ENDING, words, hold=None, after=After.REMOVE, intent=intent)
        if launch.id in book.spawning:
            return  # `launched` ends it once it lives
        if session.vitals.shows(Axis.ACTIVITY) in QUIET:
            drain_timer(book, book.sessions[session.id], now)
        else:
            book.do(Interrupt(launch))
            book.do(SetTimer(session.id, TimerKind.DRAIN, now + GRACE_S))


def drain_timer(book: Book, session: Session, _now: float) -> None:
    """When the grace of a replica that a shift drains is over: end it."""
    if session.state is State.ENDING and session.vitals.intent is not None and session.vitals.intent.verb is IntentVerb.SHIFT:
        assert session.launch is not None
        book.do(EndLaunch(session.launch, GRACE_S, unless_attended=True))


def give_up(book: Book, role: Role, why: str, now: float) -> None:
    """End a shift early: serving old replicas stay, new ones fill up, the rest drain."""
    shift = role.shift
    assert shift is not None
    old = [session.index for session in _at(book, role, shift.old) if not is_leaving(session)]
    new = sorted(_at(book, role, shift.new), key=lambda session: why_not_ready(session, role, now) != "")
    stays = old + [session.index for session in new][: max(0, len(shift.old) - len(old))]
    kept = [index for index in role.slots if index not in shift.old and index not in shift.new]
    role = book.keep_role(replace(role, slots=tuple(sorted(kept + stays))))
    behind = [other for other in _team_of(book, role) if other.key != role.key and other.shift is not None]
    _over(book, role, now, False, why)
    for other in behind:
        _over(book, other, now, False, f"not begun: {role.key}: {why}")
    for session in new:
        if session.index not in stays:
            drain(book, session, shift.actor, f"the shift was given up: {why}", now)


def _finish(book: Book, role: Role, shift: Shift, why: str, now: float) -> None:
    """Finish a role's shift: resting replicas get the new spec, the next role may begin."""
    for session in book.replicas(role.key):
        if session.index in role.slots and not is_same(session.spec, role.spec.spec):
            respecify(book, session, role.spec.spec, shift.actor, now)
    _over(book, role, now, True, why)
    go_on(book, role)


def go_on(book: Book, role: Role) -> None:
    """Let the next role in a team's shift begin, when one is done or gone."""
    book.touched |= {other.key for other in _team_of(book, role)}


def _over(book: Book, role: Role, now: float, done: bool, why: str) -> None:
    book.keep_role(replace(book.roles[role.key], shift=None, shifted=Shifted(now, done, why)))
    book.log(now, None, "shift.done" if done else "shift.given-up", role=role.key, why=why)


def _at(book: Book, role: Role, slots: tuple[int, ...]) -> list[Session]:
    return [session for session in book.replicas(role.key) if session.index in slots]


def _team_of(book: Book, role: Role) -> list[Role]:
    team = (role.spec.workspace, role.spec.team)
    return [other for other in book.roles.values() if (other.spec.workspace, other.spec.team) == team]
