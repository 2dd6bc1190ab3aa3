"""Admission: the next launch begins when a keeper answers, pace and memory allow it, and its account has no wall."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import SetTimer, Spawn, TimerKind
from vigil.core.events import MemoryRead
from vigil.core.handlers import account
from vigil.core.handlers.conversation import next_wake
from vigil.core.handlers.incident import open_incident, resolve
from vigil.core.handlers.summary import summarise
from vigil.core.handlers.transition import become
from vigil.core.model.incident import IncidentKind
from vigil.core.model.launch import Launch, Mode
from vigil.core.model.progress import SAID_NOTHING
from vigil.core.model.replace import replace
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import Session, State, unheard
from vigil.core.rules import incident
from vigil.core.rules.restart import WALLS, earliest_at

PACE = 4  # launches that may start at once on a host (DESIGN 4.4)
SHORT_S = 60.0  # after this a human should know


def launch_when_paced(book: Book, session: Session, now: float, at_once: bool = False) -> None:
    """Admit a session's launch now, or once its rest, wall, keeper, pace and memory allow it."""
    if (not at_once and _rests(book, session, now)) or _waits_for_wall(book, session, now):
        return
    if book.keeper:
        wait_for_keeper(book, session, now)
    elif book.room is not None and book.room <= 0:
        _wait_for_memory(book, session, now)
        book.waiting.append(session.id)
    elif len(book.spawning) < PACE:
        begin_launch(book, session, now)
    else:
        words = f"waits its turn: {PACE} launches start at once"
        become(book, session, now, State.PENDING, words, hold=Hold(HoldReason.PACE, None), after=None)
        book.waiting.append(session.id)


def begin_launch(book: Book, session: Session, now: float) -> None:
    """Begin an admitted launch with a new id, durable before the daemon spawns it (P8)."""
    session = summarise(book, session, now)
    number, wake = session.launches + 1, next_wake(book, session, now)
    if wake.mode is Mode.FRESH:  # the agent names its new conversation itself
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
    before = session
    trail = replace(SAID_NOTHING, spoke_before=session.vitals.trail.spoke or session.vitals.trail.spoke_before)
    vitals = replace(unheard(now), trail=trail, spent_before=session.spent)
    session = replace(session, launches=number, launch=launch, vitals=vitals)
    session = become(book, session, now, State.STARTING, "launching", hold=None, after=None, waking=None)
    book.change.launches.append(launch)
    book.spawning.add(launch.id)
    book.unordered[launch.id] = before
    if book.room is not None:
        book.room -= 1
    book.do(Spawn(session, launch))


def order_again(book: Book, session: Session, now: float) -> None:
    """Order an admitted launch that no keeper was asked for, if admission still allows it."""
    assert session.launch is not None
    book.spawning.discard(session.launch.id)
    if book.keeper or (book.room is not None and book.room <= 0) or account.met_by(book, session, now) is not None:
        launch = replace(session.launch, ended_at=now, closed=True)
        book.change.launches.append(launch)
        launch_when_paced(book, replace(session, launch=launch), now)
        return
    book.spawning.add(session.launch.id)
    if book.room is not None:
        book.room -= 1
    book.log(now, session, "session.ordered-again", why="the last daemon ended before a keeper had the order")
    book.do(Spawn(session, session.launch))


def _rests(book: Book, session: Session, now: float) -> bool:
    """Keep a launch from admission that would follow its session's death at once; say so (P4)."""
    until = earliest_at(session, now)
    if until <= now or session.last_death is None:
        return False
    state = session.state if session.state is State.CRASHED else State.PENDING
    words = f"{session.last_death.cause}: {session.last_death.evidence[0].text}"
    become(book, session, now, state, words, hold=Hold(HoldReason.BACKOFF, until), after=None)
    book.do(SetTimer(session.id, TimerKind.HOLD, until))
    return True


def _waits_for_wall(book: Book, session: Session, now: float) -> bool:
    """Keep a launch from admission while its account's wall stands; say whether one does."""
    found = account.met_by(book, session, now)
    if found is None:
        return False
    other, until = found
    assert other.wall is not None
    met = f"{other.wall.cause}: {other.wall.text}" + (f" (met by {other.name})" if other.id != session.id else "")
    hold = Hold(WALLS[other.wall.cause], until)
    become(book, session, now, State.PENDING, f"{met}; vigil start {session.name} does not wait", hold=hold, after=None)
    if until is not None:
        book.do(SetTimer(session.id, TimerKind.HOLD, until))
    return True


def wait_for_keeper(book: Book, session: Session, now: float) -> None:
    """Keep a launch from admission until a keeper answers: that is our fault, and costs nothing (P15)."""
    words = f"waits for the keeper: {book.keeper}"
    become(book, session, now, State.PENDING, words, hold=Hold(HoldReason.KEEPER, None), after=None)
    book.waiting.append(session.id)


def _wait_for_memory(book: Book, session: Session, now: float) -> None:
    words = f"waits for memory: {book.memory}"
    become(book, session, now, State.PENDING, words, hold=Hold(HoldReason.MEMORY, None), after=None)
    book.do(SetTimer(session.id, TimerKind.MEMORY, now + SHORT_S))


def memory_read(book: Book, event: MemoryRead, now: float) -> None:
    """Take in how many more launches the host's memory admits."""
    book.room, book.memory = event.room, event.why
    start_next(book, now)
    if book.room is not None and book.room <= 0:
        for session_id in book.waiting:
            session = book.sessions.get(session_id)
            if session is not None and _waits_for(session, HoldReason.PACE):
                _wait_for_memory(book, session, now)


def still_short(book: Book, session: Session, now: float) -> None:
    """When memory has kept a launch from admission too long: open an incident."""
    if _waits_for(session, HoldReason.MEMORY):
        open_incident(book, IncidentKind.LOW_MEMORY, None, f"launches wait for memory: {book.memory}", now)


def spawn_over(book: Book, launch_id: str, now: float) -> None:
    """When a launch has started or failed: admit the next in line."""
    book.spawning.discard(launch_id)
    book.unordered.pop(launch_id, None)
    start_next(book, now)


def start_next(book: Book, now: float) -> None:
    """Admit the next launches in line, as far as keeper, pace and memory allow."""
    while book.waiting and not book.keeper and len(book.spawning) < PACE and (book.room is None or book.room > 0):
        session = book.sessions.get(book.waiting.popleft())
        if (
            session is not None
            and _waits_for(session, HoldReason.PACE, HoldReason.MEMORY, HoldReason.KEEPER)
            and not _waits_for_wall(book, session, now)
        ):
            begin_launch(book, session, now)
    key = incident.key_of(IncidentKind.LOW_MEMORY)
    if key in book.incidents and not any(_waits_for(session, HoldReason.MEMORY) for session in book.sessions.values()):
        resolve(book, key, "nobody waits for memory any more", now)


def _waits_for(session: Session, *reasons: HoldReason) -> bool:
    return session.state is State.PENDING and session.waits_for in reasons
