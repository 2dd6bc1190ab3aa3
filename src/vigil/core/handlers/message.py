"""Messages: prompts wait in order, and Vigil records that it types one first: it never types one twice (P8)."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import Answer
from vigil.core.events import MessageQueued, MessageSent, MessageTyped
from vigil.core.handlers.conversation import decide_wake, life_of, log_wake, was_ended
from vigil.core.handlers.launch import relaunch
from vigil.core.handlers.transition import become
from vigil.core.model.conversation import Message, Wake
from vigil.core.model.launch import Mode
from vigil.core.model.replace import replace
from vigil.core.model.restart import After
from vigil.core.model.session import Session, State
from vigil.core.rules.wake import AWAKE, Life

MOST_MESSAGES = 100
MOST_CHARS = 4_000_000
ASLEEP = frozenset({State.PARKED, State.ENDING})  # a message wakes these
COMING = frozenset({State.PENDING, State.CRASHED})  # these come back by themselves


def queued(book: Book, event: MessageQueued, now: float) -> None:
    """When a message comes: queue it and wake a sleeping session, in one durable change."""
    session = book.sessions.get(event.session_id)
    if session is None:
        return
    if event.transcript is not None:
        session = replace(session, transcript=event.transcript)
    wake = _admit(book, session, event.message, now)
    if event.ticket:
        book.do(Answer(event.ticket, wake))
    if wake.mode is Mode.REFUSED:
        return
    session = book.keep(replace(session, queue=(*session.queue, event.message)))
    message = event.message
    book.log(now, session, "message.queued", message=message.id, actor=message.actor, characters=message.characters)
    if wake.mode is Mode.NOTHING:
        return
    log_wake(book, session, wake, now, message.actor)
    if session.state is State.ENDING:
        become(book, session, now, State.ENDING, "woken by a message", after=After.RELAUNCH, waking=wake)
    else:
        relaunch(book, book.keep(replace(session, waking=wake)), now)


def _admit(book: Book, session: Session, message: Message, now: float) -> Wake:
    """Say whether a message may wait, and whether it wakes its session."""
    if len(session.queue) >= MOST_MESSAGES:
        return Wake(Mode.REFUSED, "full", f"{len(session.queue)} messages wait for it already")
    if sum(one.characters for one in session.queue) + message.characters > MOST_CHARS:
        return Wake(Mode.REFUSED, "full", f"messages of {MOST_CHARS} characters wait for it already")
    life = life_of(session)
    if life is Life.AWAKE or (session.state in COMING and session.hold is not None and session.hold.until is not None):
        return Wake(Mode.NOTHING, AWAKE)
    if life is Life.ASLEEP and session.state in ASLEEP:
        return decide_wake(book, session, now, by_wake=True)
    stopped = session.state in (State.STOPPED, State.ENDING)
    words = was_ended(session) if stopped else f"it is {session.state} ({session.why})"
    way_out = "" if session.archived_at is not None else f"; vigil start {session.name} starts it"
    return Wake(Mode.REFUSED, session.state.value, words + way_out)


def typed(book: Book, event: MessageTyped, now: float) -> None:
    """Record that Vigil types the first message into a launch, or typed nothing of it."""
    session = book.sessions.get(event.session_id)
    if session is None or not session.queue or session.queue[0].id != event.message_id:
        return
    typed_at = now if event.launch_id else None
    first = replace(session.queue[0], launch_id=event.launch_id, typed_at=typed_at)
    book.keep(replace(session, queue=(first, *session.queue[1:])))


def sent(book: Book, event: MessageSent, now: float) -> None:
    """Take a message out of the queue and log its outcome, which may be unknown."""
    session = book.sessions.get(event.session_id)
    message = next((one for one in session.queue if one.id == event.message_id), None) if session is not None else None
    if session is None or message is None:
        return
    session = book.keep(replace(session, queue=tuple(one for one in session.queue if one.id != message.id)))
    waited_s = round(max(0.0, now - message.at), 3)
    words = {"message": message.id, "outcome": event.outcome, "why": event.why, "waited_s": waited_s}
    book.log(now, session, "message.sent", actor=message.actor, **words)
