"""Launches: a session comes to life, never beside its last launch (P1), and its runtime may outlive it."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import CloseLaunch, SetTimer, TimerKind
from vigil.core.events import Closed, Found, Interrupted, Launched, RuntimeEnded
from vigil.core.handlers import heartbeat, watchdog
from vigil.core.handlers.admission import launch_when_paced, order_again, spawn_over
from vigil.core.handlers.conversation import judge_resume
from vigil.core.handlers.intent import spares_people
from vigil.core.handlers.summary import summarise
from vigil.core.handlers.transition import become
from vigil.core.model.conversation import NOTHING_SPENT
from vigil.core.model.replace import replace
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import Session, State
from vigil.core.rules.liveness import leaves_its_pane
from vigil.core.rules.restart import comes_back_by_itself

COLD_START = "the host was booted anew, or this home is a copy, and its role does not start by itself; vigil up starts it"


def relaunch(book: Book, session: Session, now: float, by_policy: bool = False) -> None:
    """Launch once the last launch is verified gone (P1); policy spares panes in use (P2)."""
    if session.launch is None:
        launch_when_paced(book, book.keep(replace(session, hold=None)), now)
    else:
        state = session.state if session.state is State.CRASHED else State.PENDING
        become(book, session, now, state, "ending what its last launch left", hold=Hold(HoldReason.SURVIVOR, None), after=None)
        book.end_all(session.launch, unless_attended=by_policy and leaves_its_pane(session))


def launched(book: Book, event: Launched, now: float) -> None:
    """When a launch came to life, or a new daemon found it: record its processes."""
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
        cgroup=before.cgroup or event.cgroup,
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
    """When the last daemon ended before a keeper had a launch's order: order it now, uncharged."""
    session = book.living(event.launch_id)
    if session is None or session.state is not State.STARTING or session.launch is None:
        spawn_over(book, event.launch_id, now)
        return
    if book.booted and not comes_back_by_itself(book.role_of(session)):
        spawn_over(book, event.launch_id, now)
        launch = replace(session.launch, ended_at=now)
        book.change.launches.append(launch)
        become(book, replace(session, launch=launch), now, State.PENDING, COLD_START, hold=Hold(HoldReason.COLD_START, None))
        return
    if event.launch_id in book.left:  # heard again, it would be ordered twice (P1)
        book.left.discard(event.launch_id)
        order_again(book, session, now)


def found(book: Book, event: Found, now: float) -> None:
    """When a launch's agent is found: record its process, whose life is the launch's now."""
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
    """When the pane of a dead launch has closed: close the launch."""
    session = book.of_launch(event.launch_id)
    launch = session.launch if session else None
    if session is None or launch is None or launch.ended_at is None or launch.closed or session.state is State.ENDING:
        return
    book.do(CloseLaunch(launch))


def closed(book: Book, event: Closed, now: float) -> None:
    """When a dead launch is closed: record what became of its runtime and conversation."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        session = book.read_axes(book.close(session) if event.gone else session, event.facts)
        session = judge_resume(book, book.keep(replace(session, transcript=event.transcript or session.transcript)), now)
        summarise(book, session, now)
