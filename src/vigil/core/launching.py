"""Launching: how a session comes to life, at a pace, and never beside its last launch (P1)."""

from __future__ import annotations

from vigil.core import incidents, limits, pulses, recovering, watching
from vigil.core.book import GRACE_S, Book
from vigil.core.changing import replace
from vigil.core.doing import UNHEARD
from vigil.core.effects import SetTimer, Spawn
from vigil.core.events import Attended, Interrupted, Launched, MemoryRead
from vigil.core.incident import IncidentKind
from vigil.core.intents import spares_people
from vigil.core.model import NOTHING_SPENT, Axis, Hold, Launch, Mode, Reading, Session, State
from vigil.core.restart import comes_back_by_itself
from vigil.core.summary import summarise
from vigil.core.tally import NOTHING
from vigil.core.transition import become
from vigil.core.waking import next_wake

PACE = 4  # launches that may start at once on a host (DESIGN 4.4)
SHORT_S = 60.0  # waiting longer for memory is a human's business
COLD_START = "the host was booted anew, or this home is a copy, and its role does not start by itself; vigil up starts it"
ATTENDED_S = 10.0  # what is in use is asked for again so often


def relaunch(book: Book, session: Session, now: float, by_policy: bool = False) -> None:
    """Launch anew; whatever the last launch left behind is ended and verified gone first (P1).

    By policy, a pane that a dead agent left open is not ended while a person is in it, or another agent works there (P2).
    """
    if session.launch is None:
        launch_when_paced(book, book.keep(replace(session, hold=None)), now)
    else:
        state = session.state if session.state is State.CRASHED else State.PENDING
        become(book, session, now, state, "ending what its last launch left", hold=Hold("survivor", None), after=None)
        book.end_all(session.launch, unless_attended=by_policy and leaves_its_pane(session))


def leaves_its_pane(session: Session) -> bool:
    """Say whether the command around a dead agent lives on: a person may be looking at it, and it closes by itself."""
    launch, runtime = session.launch, session.axes.get(Axis.RUNTIME)
    if launch is None or launch.ended_at is None or launch.closed or launch.found in (None, launch.process):
        return False
    return runtime is not None and runtime.value == "alive"


def launch_when_paced(book: Book, session: Session, now: float) -> None:
    """Launch now, or when one of those that are starting has started and the host has memory for one more.

    Who would only meet a wall that somebody of its account met waits for that first, and for nothing else.
    """
    if _waits_for_wall(book, session, now):
        return
    if book.room is not None and book.room <= 0:
        _wait_for_memory(book, session, now)
        book.waiting.append(session.id)
    elif len(book.spawning) < PACE:
        begin_launch(book, session, now)
    else:
        words = f"waits its turn: {PACE} launches start at once"
        become(book, session, now, State.PENDING, words, hold=Hold("pace", None), after=None)
        book.waiting.append(session.id)


def _waits_for_wall(book: Book, session: Session, now: float) -> bool:
    """Let a launch wait for a wall to be gone; say whether there is one."""
    found = limits.met_by(book, session, now)
    if found is None:
        return False
    other, until = found
    assert other.wall is not None
    met = f"{other.wall.cause}: {other.wall.text}" + (f" (met by {other.name})" if other.id != session.id else "")
    hold = Hold(other.wall.cause.value, until)
    become(book, session, now, State.PENDING, f"{met}; vigil start {session.name} does not wait", hold=hold, after=None)
    if until is not None:
        book.do(SetTimer(session.id, "hold", until))
    return True


def _wait_for_memory(book: Book, session: Session, now: float) -> None:
    words = f"waits for memory: {book.memory}"
    become(book, session, now, State.PENDING, words, hold=Hold("memory", None), after=None)
    book.do(SetTimer(session.id, "memory", now + SHORT_S))


def memory_read(book: Book, event: MemoryRead, now: float) -> None:
    """Take in how many more launches the host has memory for; who waits for that waits for nothing else."""
    book.room, book.memory = event.room, event.why
    start_next(book, now)
    if book.room is not None and book.room <= 0:
        for session_id in book.waiting:
            session = book.sessions.get(session_id)
            if session is not None and _waits_its_turn(session) and session.hold is not None and session.hold.reason == "pace":
                _wait_for_memory(book, session, now)


def still_short(book: Book, session: Session, now: float) -> None:
    """A launch has waited for memory for a while: a human should know."""
    if session.hold is not None and session.hold.reason == "memory":
        incidents.open_incident(book, IncidentKind.LOW_MEMORY, None, f"launches wait for memory: {book.memory}", now)


def begin_launch(book: Book, session: Session, now: float) -> None:
    """Make the next launch, durable before it is spawned; its id is never used twice."""
    session = summarise(book, session, now)
    number, wake = session.launches + 1, next_wake(book, session, now)
    if wake.mode is Mode.FRESH:  # the conversation of before is not this one's: whatever it says first is
        session = replace(session, conversation="", transcript=None, strikes=0, prompted_at=None)
    launch = Launch(
        id=f"{session.id}-{number}",
        session_id=session.id,
        number=number,
        created_at=now,
        mode=wake.mode,
        woken_for=wake.cause,
        conversation=session.conversation,
    )
    if session.launch is not None:
        book.by_launch.pop(session.launch.id, None)
    session = replace(session, doing=UNHEARD, spent_before=session.spent, read_to={}, recent=(), tally=NOTHING, prompted_by="")
    session = replace(session, **watching.clear_trail(session))
    session = replace(
        session, launches=number, launch=launch, axes=unheard(now), intent=None, attached=0, doubt=None, pulse=None
    )
    session = become(book, session, now, State.STARTING, "launching", hold=None, after=None, waking=None)
    book.change.launches.append(launch)
    book.spawning.add(launch.id)
    if book.room is not None:
        book.room -= 1
    book.do(Spawn(session, launch))


def unheard(now: float) -> dict[Axis, Reading]:
    """Return the axes of a launch of which nothing was read and which has said nothing yet."""
    return {Axis.ACTIVITY: Reading("unknown", "none", False, now, now, "this agent has reported nothing yet")}


def spawn_over(book: Book, launch_id: str, now: float) -> None:
    """A launch has started or failed: the next in turn may begin."""
    book.spawning.discard(launch_id)
    start_next(book, now)


def start_next(book: Book, now: float) -> None:
    """Launch those whose turn it is, as far as pace and memory allow."""
    while book.waiting and len(book.spawning) < PACE and (book.room is None or book.room > 0):
        session = book.sessions.get(book.waiting.popleft())
        if session is not None and _waits_its_turn(session) and not _waits_for_wall(book, session, now):
            begin_launch(book, session, now)
    key = incidents.key_of(IncidentKind.LOW_MEMORY)
    if key in book.incidents and not any(map(_waits_for_memory, book.sessions.values())):
        incidents.resolve(book, key, "nobody waits for memory any more", now)


def _waits_its_turn(session: Session) -> bool:
    return session.state is State.PENDING and session.hold is not None and session.hold.reason in ("pace", "memory")


def _waits_for_memory(session: Session) -> bool:
    return session.hold is not None and session.hold.reason == "memory"


def attended(book: Book, event: Attended, now: float) -> None:
    """What was to be ended is in use: a replacement waits, and asks again; what policy would have ended lives on (P2)."""
    session = book.of_launch(event.launch_id)
    if session is None:
        return
    if session.state is State.ENDING and spares_people(session.intent):
        _spare(book, session, event.why, now)
        return
    if session.stall is not None and session.stall.step and session.state in recovering.TREATED:
        recovering.spared(book, session, event.why, now)
        return
    if session.hold is None or session.hold.reason != "survivor":
        return
    until = now + ATTENDED_S
    words = f"waits with its next launch: {event.why}; vigil restart {session.name} does not wait"
    become(book, session, now, session.state, words, hold=Hold("survivor", until))
    book.do(SetTimer(session.id, "hold", until))


def _spare(book: Book, session: Session, why: str, now: float) -> None:
    """Let a session live on that policy would have ended; of one that died meanwhile only the rest is left to end."""
    assert session.launch is not None and session.intent is not None
    if session.launch.ended_at is not None:
        book.do(SetTimer(session.id, "drain", now + ATTENDED_S))
        return
    book.log(now, session, "session.spared", verb=session.intent.verb, why=why)
    attached = max(1, session.attached)
    words = f"not ended ({session.intent.verb}): {why}"
    # It may have been interrupted already, and end of that in a moment: then that is ours and nobody's crash (P8).
    intent = replace(session.intent, void_from=now + GRACE_S) if now - session.intent.at >= GRACE_S else None
    become(book, session, now, State.RUNNING, words, after=None, intent=intent, attached=attached)
    if session.pulse is not None:
        book.do(SetTimer(session.id, "pulse", now + ATTENDED_S))


def launched(book: Book, event: Launched, now: float) -> None:
    """A launch came to life, or was found alive by a new daemon."""
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
        book.end_all(launch, unless_attended=spares_people(session.intent))
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
    elif event.adopted:  # it is as it was stored: only its readings are new, and those are not worth a write
        book.keep(session, durable=launch != before)
    if session.state is State.RUNNING and (session.pulse is None or before.process is None):
        session = pulses.begin(book, session, now)
    if before.process is None or event.adopted:
        watching.begin(book, session, now)
    if session.role is None and session.charges:
        book.do(SetTimer(session.id, "stable", (launch.started_at or now) + session.spec.restart.reset_after_s))


def interrupted(book: Book, event: Interrupted, now: float) -> None:
    """A launch that died with its daemon is made anew; nobody is charged."""
    spawn_over(book, event.launch_id, now)
    session = book.of_launch(event.launch_id)
    if session is None or session.state is not State.STARTING or session.launch is None:
        return
    launch = replace(session.launch, ended_at=now)
    book.change.launches.append(launch)
    if book.booted and not comes_back_by_itself(book.role_of(session)):
        become(book, replace(session, launch=launch), now, State.PENDING, COLD_START, hold=Hold("cold-start", None))
        return
    session = become(book, replace(session, launch=launch), now, State.PENDING, "its launch was interrupted")
    relaunch(book, session, now)
