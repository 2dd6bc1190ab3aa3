"""Launches: a session comes to life, never beside its last launch (P1), and its runtime may outlive it."""

from __future__ import annotations

from vigil.core.book import GRACE_S, Book
from vigil.core.effects import CloseLaunch, SetTimer
from vigil.core.events import Attended, Closed, Found, Interrupted, Launched, RuntimeEnded
from vigil.core.handlers import heartbeat, remedy, watchdog
from vigil.core.handlers.admission import launch_when_paced, spawn_over
from vigil.core.handlers.conversation import judge_resume
from vigil.core.handlers.intent import spares_people, tell_outcome
from vigil.core.handlers.summary import summarise
from vigil.core.handlers.transition import become
from vigil.core.model.conversation import NOTHING_SPENT
from vigil.core.model.replace import replace
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import Session, State
from vigil.core.model.sighting import ReapOutcome
from vigil.core.model.timer import TimerKind
from vigil.core.rules.liveness import leaves_its_pane
from vigil.core.rules.restart import comes_back_by_itself

COLD_START = "the host was booted anew, or this home is a copy, and its role does not start by itself; vigil up starts it"
ATTENDED_S = 10.0  # how often Vigil asks again whether it is still in use


def relaunch(book: Book, session: Session, now: float, by_policy: bool = False) -> None:
    """Launch once the last launch is verified gone (P1); by policy, a dead agent's pane in use stays open (P2)."""
    if session.launch is None:
        launch_when_paced(book, book.keep(replace(session, hold=None)), now)
    else:
        state = session.state if session.state is State.CRASHED else State.PENDING
        become(book, session, now, state, "ending what its last launch left", hold=Hold(HoldReason.SURVIVOR, None), after=None)
        book.end_all(session.launch, unless_attended=by_policy and leaves_its_pane(session))


def attended(book: Book, event: Attended, now: float) -> None:
    """Spare what a person uses: a replacement waits and asks again; policy ends nothing there (P2)."""
    session = book.of_launch(event.launch_id)
    if session is None:
        return
    if session.state is State.ENDING and spares_people(session.vitals.intent):
        _spare(book, session, event.why, now)
        return
    if session.vitals.stall is not None and session.vitals.stall.step and session.state in remedy.TREATED:
        remedy.spared(book, session, event.why, now)
        return
    if session.hold is None or session.hold.reason != HoldReason.SURVIVOR:
        return
    until = now + ATTENDED_S
    words = f"waits with its next launch: {event.why}; vigil restart {session.name} does not wait"
    become(book, session, now, session.state, words, hold=Hold(HoldReason.SURVIVOR, until))
    book.do(SetTimer(session.id, TimerKind.HOLD, until))


def _spare(book: Book, session: Session, why: str, now: float) -> None:
    """Let a session live on that policy would have ended; if it died meanwhile, end the rest later."""
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


def launched(book: Book, event: Launched, now: float) -> None:
    """Record the processes of a launch that came to life, or that a new daemon found alive."""
    spawn_over(book, event.launch_id, now)
    session = book.living(event.launch_id)
    if session is None or session.launch is None:
        return
    before = session.launch
    launch = replace(
        before,
        started_at=before.started_at or event.at,
        process=event.process,
        root=event.root,
        server=event.server,
        pane=event.pane,
        names=before.names or event.names,
        speaks=before.speaks or event.speaks,
        reads_input=before.reads_input or event.reads_input,
    )
    session = book.read_axes(replace(session, launch=launch), event.facts)
    if event.conversation and event.conversation != session.conversation:
        session = replace(session, conversation=event.conversation, counted=NOTHING_SPENT)
    if event.account and event.account != session.account:
        session = replace(session, account=event.account)
    if launch != before:
        book.change.launches.append(launch)
    if session.state is State.ENDING:
        book.keep(session)
        book.end_all(launch, unless_attended=spares_people(session.vitals.intent))
        return
    if session.state is State.STARTING:
        if before.process is None:
            book.log(now, session, "session.launched", pid=event.process.pid)
            for words in event.without:
                book.log(now, session, "session.without", what=words)
        if launch.names and launch.found is None:
            session = become(book, session, now, State.STARTING, f"waits for {' or '.join(launch.names)} to run in it")
        else:
            session = become(book, session, now, State.RUNNING, f"up as pid {event.process.pid}", hold=None)
    elif event.adopted:  # only its readings are new, which are not worth a write
        book.keep(session, durable=launch != before)
    if session.state is State.RUNNING and (session.vitals.pulse is None or before.process is None):
        session = heartbeat.begin(book, session, now)
    if before.process is None or event.adopted:
        watchdog.begin(book, session, now)
    if session.role is None and session.charges:
        book.do(SetTimer(session.id, TimerKind.STABLE, (launch.started_at or now) + session.spec.restart.reset_after_s))


def interrupted(book: Book, event: Interrupted, now: float) -> None:
    """Relaunch a session whose spawn died with the daemon, without a charge."""
    spawn_over(book, event.launch_id, now)
    session = book.of_launch(event.launch_id)
    if session is None or session.state is not State.STARTING or session.launch is None:
        return
    launch = replace(session.launch, ended_at=now)
    book.change.launches.append(launch)
    if book.booted and not comes_back_by_itself(book.role_of(session)):
        become(book, replace(session, launch=launch), now, State.PENDING, COLD_START, hold=Hold(HoldReason.COLD_START, None))
        return
    session = become(book, replace(session, launch=launch), now, State.PENDING, "its launch was interrupted")
    relaunch(book, session, now)


def found(book: Book, event: Found, now: float) -> None:
    """Record the agent's own process: its life is the launch's from now on."""
    session = book.living(event.launch_id)
    if session is None or session.launch is None or session.launch.found is not None:
        return
    launch = replace(session.launch, found=event.process)
    book.change.launches.append(launch)
    session = book.read_axes(replace(session, launch=launch), (event.fact,))
    book.log(now, session, "session.agent-found", pid=event.process.pid)
    if session.state is State.STARTING:
        session = become(book, session, now, State.RUNNING, f"up as pid {event.process.pid}", hold=None)
        session = heartbeat.begin(book, session, now)
        watchdog.begin(book, session, now)
    else:
        book.keep(session)


def runtime_ended(book: Book, event: RuntimeEnded, _now: float) -> None:
    """Close a dead launch whose pane has closed."""
    session = book.of_launch(event.launch_id)
    launch = session.launch if session else None
    if session is None or launch is None or launch.ended_at is None or launch.closed or session.state is State.ENDING:
        return
    book.do(CloseLaunch(launch))


def closed(book: Book, event: Closed, now: float) -> None:
    """Show what became of a dead launch's runtime and conversation."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        session = book.read_axes(book.close(session) if event.gone else session, event.facts)
        session = judge_resume(book, book.keep(replace(session, transcript=event.transcript or session.transcript)), now)
        summarise(book, session, now)
