"""Ending: Vigil ends a launch on purpose, verifies that, and does what was to follow."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.book import Book
from vigil.core.effects import Purge, SetTimer
from vigil.core.events import Asked, Ended
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
from vigil.core.model.restart import After, HoldReason
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.model.sighting import ReapOutcome
from vigil.core.model.timer import TimerKind
from vigil.core.rules.wake import Resumability

LEFT_OVER = "what it left could not be ended"


def end(book: Book, session: Session, event: Asked, after: After, now: float) -> None:
    """Record the intent, then end the launch; an end under way only changes what follows."""
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
    """Go on after the end of a launch: it is verified gone, or stuck and needs a human."""
    session = book.of_launch(event.launch_id)
    if session is None:
        return
    _ended(book, session, event, now)
    _tell_outcome(book, session, event)


OUTCOMES = {
    State.PARKED: ReapOutcome.PARKED,
    State.STOPPED: ReapOutcome.STOPPED,
    State.STUCK: ReapOutcome.FAILED,
}


def _tell_outcome(book: Book, before: Session, event: Ended) -> None:
    """Tell the sweep what became of a launch, or of what a dead one left."""
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
    """Record a death that no sensor told of, close the launch, and do what was to follow."""
    if session.state is State.ENDING:
        session = bury(book, session, now)
    if session.launch is not None and session.launch.ended_at is not None:
        session = _close(book, session, now)
    session = _tell_reaped(book, session, now)
    if session.state is State.ENDING and session.after is not None:
        FOLLOWS[session.after](book, session, now)
    elif session.state in (State.CRASHED, State.PENDING) and _waits_for_the_end(session):
        launch_when_paced(book, session, now)


def _close(book: Book, session: Session, now: float) -> Session:
    """Close a launch of which nothing is left, and judge its conversation."""
    ending = session.state is State.ENDING
    gone = [axis for axis in (Axis.SERVER, Axis.RUNTIME, Axis.PROCESS) if ending and axis in session.vitals.axes]
    facts = tuple(Fact(axis, AxisValue.DEAD, "verified", now, conclusive=True) for axis in gone)
    session = judge_resume(book, book.keep(book.read_axes(book.close(session), facts)), now)
    return summarise(book, session, now)


def _not_gone(book: Book, session: Session, why: str, now: float) -> None:
    """Show what could not be ended as stuck; a failed clearing only goes into the log."""
    if is_cleared(session):
        book.log(now, session, "session.spared", verb=IntentVerb.REAP.value, why=f"{LEFT_OVER}: {why}")
        session = book.keep(with_vitals(replace(session, why=f"{LEFT_OVER}: {why}"), intent=None))
    if session.state is State.ENDING or _waits_for_the_end(session):
        words = f"could not be ended: {why}"
        become(book, session, now, State.STUCK, words, hold=None, after=session.after, unended=why)


def _waits_for_the_end(session: Session) -> bool:
    """Say whether the next launch waits until the last one is verified gone."""
    return session.hold is not None and session.hold.reason is HoldReason.SURVIVOR


def is_cleared(session: Session) -> bool:
    """Say whether the reaper ends what a dead launch left; the session's state does not show that."""
    intent, launch = session.vitals.intent, session.launch
    if intent is None or launch is None or launch.ended_at is None or session.state is State.ENDING:
        return False
    return intent.verb is IntentVerb.REAP and intent.launch_id == launch.id and intent.at > launch.ended_at


def _tell_reaped(book: Book, session: Session, now: float) -> Session:
    """Log once what was reaped: a launch, or what a dead one left."""
    intent, launch = session.vitals.intent, session.launch
    if intent is None or launch is None or intent.verb is not IntentVerb.REAP or intent.launch_id != launch.id:
        return session
    leftovers = is_cleared(session)
    if session.state is State.ENDING or leftovers:
        data = {"class": intent.kind, "why": intent.why, "actor": intent.actor}
        book.log(now, session, "session.reaped", **data)
    return book.keep(with_vitals(session, intent=None)) if leftovers else session


def _stop(book: Book, session: Session, now: float) -> None:
    intent = session.vitals.intent
    words = f"stopped by {intent.actor if intent else 'operator'}"
    if intent is not None and intent.verb is IntentVerb.REAP:
        words = f"reaped: {intent.reason}"
    become(book, session, now, State.STOPPED, words, hold=None, after=None, waking=None)


def _park(book: Book, session: Session, now: float) -> None:
    become(book, session, now, State.PARKED, _asleep(book, session), hold=None, after=None, waking=None)


def _asleep(book: Book, session: Session) -> str:
    """Say who put a session to sleep, why, and how it will wake."""
    intent = session.vitals.intent
    actor, reason = (intent.actor, intent.reason) if intent is not None else ("operator", "")
    found, _ = find_conversation(book, session)
    how = "wakes in its conversation" if found is Resumability.RESUMABLE else f"wakes with a new conversation ({found})"
    return f"put to sleep by {actor}{f' ({reason})' if reason else ''}; {how}"


def archive(book: Book, session: Session, now: float) -> None:
    """Put a session away: Vigil keeps its record and lists it only with `--all`."""
    actor = session.vitals.intent.actor if session.vitals.intent is not None else "operator"
    adopted = session.launch is not None and session.launch.host is not None
    back = "" if adopted else f"vigil start {session.name} brings it back, "  # Vigil never launches an adopted session
    words = f"archived by {actor}; {back}vigil rm {session.name} removes it"
    archived_at = now if session.archived_at is None else session.archived_at
    # `stopped` keeps the name: a namesake must not overwrite a record that a person kept.
    become(book, session, now, State.STOPPED, words, hold=None, after=None, archived_at=archived_at)


def remove(book: Book, session: Session, now: float) -> None:
    """Forget a session and everything keyed by it."""
    session = summarise(book, session, now)
    book.log(now, session, "session.removed")
    book.forget(session)
    for other in forgotten(book, session):  # by a timer: this change may remove them too
        assert other.hold is not None
        book.keep(replace(other, hold=replace(other.hold, until=now)))
        book.do(SetTimer(other.id, TimerKind.HOLD, now))
    book.change.sessions.pop(session.id, None)
    book.change.removed[session.id] = session
    book.do(Purge(session))


FOLLOWS: dict[After, Callable[[Book, Session, float], None]] = {  # what follows a verified end
    After.STOP: _stop,
    After.PARK: _park,
    After.ARCHIVE: archive,
    After.RELAUNCH: launch_when_paced,
    After.REMOVE: remove,
}
