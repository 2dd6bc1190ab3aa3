"""Ending: Vigil ends a launch on purpose, verifies that, and does what was to follow; it spares what a person uses."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.book import GRACE_S, Book
from vigil.core.effects import Purge, SetTimer, TimerKind
from vigil.core.events import Asked, Attended, Ended
from vigil.core.handlers import remedy
from vigil.core.handlers.account import forgotten
from vigil.core.handlers.admission import launch_when_paced
from vigil.core.handlers.conversation import find_conversation, judge_resume
from vigil.core.handlers.death import bury
from vigil.core.handlers.intent import REACTION, intend, spares_people, tell_outcome
from vigil.core.handlers.summary import summarise
from vigil.core.handlers.transition import become
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.replace import replace
from vigil.core.model.restart import After, Hold, HoldReason
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.model.sighting import ReapOutcome
from vigil.core.rules.wake import Resumability

ATTENDED_S = 10.0  # how often Vigil asks again whether it is still in use
LEFT_OVER = "what it left could not be ended"


def end(book: Book, session: Session, event: Asked, after: After, now: float) -> None:
    """End a launch on purpose, intent first; an end under way only changes what follows."""
    assert session.launch is not None
    launch, ending = session.launch, session.state is State.ENDING
    cause = Cause.POLICY if event.actor == REACTION else Cause.OPERATOR
    intent = intend(book, session, event.verb, cause, event.actor, event.reason, now)
    if launch.ended_at is not None and not ending:
        intent = session.vitals.intent or intent
    become(book, session, now, State.ENDING, f"{event.verb} by {event.actor}", hold=None, after=after, intent=intent)
    in_flight = launch.id in book.spawning and launch.ended_at is None
    waits = spares_people(session.vitals.intent)  # the end waits for a person to leave; a command does not
    if (not ending or waits) and not in_flight:  # `launched` ends a spawn in flight once it lives
        book.end_all(launch, unless_attended=spares_people(intent))


def ended(book: Book, event: Ended, now: float) -> None:
    """When a launch's end is verified or failed: do what follows, or show it stuck."""
    session = book.of_launch(event.launch_id)
    if session is None:
        return
    _ended(book, session, event, now)
    _tell_outcome(book, session, event)


OUTCOMES = {State.PARKED: ReapOutcome.PARKED, State.STOPPED: ReapOutcome.STOPPED, State.STUCK: ReapOutcome.FAILED}


def _tell_outcome(book: Book, before: Session, event: Ended) -> None:
    """After an end: tell the sweep what became of a launch or its leftovers."""
    session = book.sessions.get(before.id)
    if session is None:
        tell_outcome(book, before.vitals.intent, ReapOutcome.REMOVED, "")
    elif is_cleared(before):
        done = (ReapOutcome.ENDED, before.vitals.intent.why if before.vitals.intent else "")
        tell_outcome(book, before.vitals.intent, *(done if event.ok else (ReapOutcome.FAILED, session.why)))
    elif before.state is State.ENDING:
        tell_outcome(book, before.vitals.intent, OUTCOMES.get(session.state, ReapOutcome.ENDED), session.why)


def _ended(book: Book, session: Session, event: Ended, now: float) -> None:
    if event.transcript is not None:
        session = book.keep(replace(session, transcript=event.transcript))
    if event.ok:
        _gone(book, session, now)
    else:
        _not_gone(book, session, event.why, now)


def _gone(book: Book, session: Session, now: float) -> None:
    """When an end is verified: record a missed death, close the launch, do what follows."""
    if session.state is State.ENDING:
        session = bury(book, session, now)
    if session.launch is not None and session.launch.ended_at is not None:
        session = _close(book, session, now)
    session = _tell_reaped(book, session, now)
    if session.state is State.ENDING and session.after is not None:
        FOLLOWS[session.after](book, session, now)
    elif session.state in (State.CRASHED, State.PENDING) and session.waits_for is HoldReason.SURVIVOR:
        launch_when_paced(book, session, now)


def _close(book: Book, session: Session, now: float) -> Session:
    """Close an ended launch of which nothing is left, and judge its conversation."""
    ending = session.state is State.ENDING
    gone = [axis for axis in (Axis.SERVER, Axis.RUNTIME, Axis.PROCESS) if ending and axis in session.vitals.axes]
    facts = tuple(Fact(axis, AxisValue.DEAD, "verified", now, conclusive=True) for axis in gone)
    session = judge_resume(book, book.keep(book.read_axes(book.close(session), facts)), now)
    return summarise(book, session, now)


def _not_gone(book: Book, session: Session, why: str, now: float) -> None:
    """When an end failed: show the session as stuck; a failed clearing is only logged."""
    if is_cleared(session):
        book.log(now, session, "session.spared", verb=IntentVerb.REAP.value, why=f"{LEFT_OVER}: {why}")
        session = book.keep(with_vitals(replace(session, why=f"{LEFT_OVER}: {why}"), intent=None))
    if session.state is State.ENDING or session.waits_for is HoldReason.SURVIVOR:
        words = f"could not be ended: {why}"
        become(book, session, now, State.STUCK, words, hold=None, after=session.after, unended=why)


def is_cleared(session: Session) -> bool:
    """Say whether the reaper has a dead launch's leftovers ended, which no state shows."""
    intent, launch = session.vitals.intent, session.launch
    if intent is None or launch is None or launch.ended_at is None or session.state is State.ENDING:
        return False
    return intent.verb is IntentVerb.REAP and intent.launch_id == launch.id and intent.at > launch.ended_at


def _tell_reaped(book: Book, session: Session, now: float) -> Session:
    """Log once that the end the reaper wanted is done, of a launch or leftovers."""
    intent, launch = session.vitals.intent, session.launch
    if intent is None or launch is None or intent.verb is not IntentVerb.REAP or intent.launch_id != launch.id:
        return session
    leftovers = is_cleared(session)
    if session.state is State.ENDING or leftovers:
        data = {"class": intent.kind, "why": intent.why, "actor": intent.actor}
        book.log(now, session, "session.reaped", **data)
    return book.keep(with_vitals(session, intent=None)) if leftovers else session


def attended(book: Book, event: Attended, now: float) -> None:
    """When a person uses what was to end: spare it, or ask again later (P2)."""
    session = book.of_launch(event.launch_id)
    if session is None:
        return
    if session.state is State.ENDING and spares_people(session.vitals.intent):
        _spare(book, session, event.why, now)
        return
    if session.vitals.stall is not None and session.vitals.stall.step and session.state in remedy.TREATED:
        remedy.spared(book, session, event.why, now)
        return
    if session.waits_for is not HoldReason.SURVIVOR:
        return
    until = now + ATTENDED_S
    words = f"waits with its next launch: {event.why}; vigil restart {session.name} does not wait"
    become(book, session, now, session.state, words, hold=Hold(HoldReason.SURVIVOR, until))
    book.do(SetTimer(session.id, TimerKind.HOLD, until))


def _spare(book: Book, session: Session, why: str, now: float) -> None:
    """Let a session live whose end a person prevented; a dead one's rest ends later."""
    assert session.launch is not None and session.vitals.intent is not None
    if session.launch.ended_at is not None:
        book.do(SetTimer(session.id, TimerKind.DRAIN, now + ATTENDED_S))
        return
    book.log(now, session, "session.spared", verb=session.vitals.intent.verb, why=why)
    attached = max(1, session.vitals.attached)
    words = f"not ended ({session.vitals.intent.verb}): {why}"
    # If our interrupt ends it in a moment, that end is ours and no crash (P8).
    intent = replace(session.vitals.intent, void_from=now + GRACE_S) if now - session.vitals.intent.at >= GRACE_S else None
    become(book, session, now, State.RUNNING, words, after=None, intent=intent, attached=attached)
    tell_outcome(book, session.vitals.intent, ReapOutcome.SPARED, words)
    if session.vitals.pulse is not None:
        book.do(SetTimer(session.id, TimerKind.PULSE, now + ATTENDED_S))


def _stop(book: Book, session: Session, now: float) -> None:
    intent = session.vitals.intent
    words = f"stopped by {intent.actor if intent else 'operator'}"
    if intent is not None and intent.verb is IntentVerb.REAP:
        words = f"reaped: {intent.reason}"
    become(book, session, now, State.STOPPED, words, hold=None, after=None, waking=None)


def _park(book: Book, session: Session, now: float) -> None:
    become(book, session, now, State.PARKED, _asleep(book, session), hold=None, after=None, waking=None)


def _asleep(book: Book, session: Session) -> str:
    """Say who put an ended session to sleep, why, and how it will wake."""
    intent = session.vitals.intent
    actor, reason = (intent.actor, intent.reason) if intent is not None else ("operator", "")
    found, _ = find_conversation(book, session)
    how = "wakes in its conversation" if found is Resumability.RESUMABLE else f"wakes with a new conversation ({found})"
    return f"put to sleep by {actor}{f' ({reason})' if reason else ''}; {how}"


def archive(book: Book, session: Session, now: float) -> None:
    """After its end, put a session away: only its record stays, listed with `--all`."""
    actor = session.vitals.intent.actor if session.vitals.intent is not None else "operator"
    adopted = session.launch is not None and session.launch.host is not None
    back = "" if adopted else f"vigil start {session.name} brings it back, "  # Vigil never launches an adopted session
    words = f"archived by {actor}; {back}vigil rm {session.name} removes it"
    archived_at = now if session.archived_at is None else session.archived_at
    # `stopped` keeps the name: a namesake must not overwrite a record that a person kept.
    become(book, session, now, State.STOPPED, words, hold=None, after=None, archived_at=archived_at)


def remove(book: Book, session: Session, now: float) -> None:
    """After its end, forget a session and everything keyed by it."""
    session = summarise(book, session, now)
    book.log(now, session, "session.removed")
    role = book.role_of(session)
    if role is not None and role.trial == session.id:
        book.keep_role(replace(role, trial=None))
    book.forget(session)
    for other in forgotten(book, session):  # by a timer: this change may remove them too
        assert other.hold is not None
        book.keep(replace(other, hold=replace(other.hold, until=now)))
        book.do(SetTimer(other.id, TimerKind.HOLD, now))
    book.change.sessions.pop(session.id, None)
    book.change.removed[session.id] = session
    book.do(Purge(session))


def _relaunch(book: Book, session: Session, now: float) -> None:
    """After its end, launch a session anew: at once for a person, else after a rest (P4)."""
    intent = session.vitals.intent
    by_policy = session.waking is None and intent is not None and intent.cause is Cause.POLICY
    launch_when_paced(book, session, now, at_once=not by_policy)


FOLLOWS: dict[After, Callable[[Book, Session, float], None]] = {  # what follows a verified end
    After.STOP: _stop,
    After.PARK: _park,
    After.ARCHIVE: archive,
    After.RELAUNCH: _relaunch,
    After.REMOVE: remove,
}
