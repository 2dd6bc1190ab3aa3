"""Ending: a launch is ended on purpose, verified, and what was meant to follow follows."""

from __future__ import annotations

from vigil.core import incidents
from vigil.core.book import Book
from vigil.core.dying import bury
from vigil.core.effects import Purge
from vigil.core.events import Asked, Ended
from vigil.core.intents import intend, spares_people
from vigil.core.launching import launch_when_paced
from vigil.core.model import After, Axis, Cause, Fact, Session, State


def end(book: Book, session: Session, event: Asked, after: After, now: float) -> None:
    """Record the intent, then end the launch; while another ending runs only what follows it changes."""
    assert session.launch is not None
    launch, ending = session.launch, session.state is State.ENDING
    intent = intend(book, session, event.verb, Cause.OPERATOR, event.actor, event.reason, now)
    if launch.ended_at is not None and not ending:
        intent = session.intent or intent
    book.become(session, now, State.ENDING, f"{event.verb} by {event.actor}", hold=None, after=after, intent=intent)
    in_flight = launch.id in book.spawning and launch.ended_at is None
    waits = spares_people(session.intent)  # for a person to leave: who asks does not wait for that
    if (not ending or waits) and not in_flight:  # a spawn in flight is ended when it has come to life; the dead do not
        book.end_all(launch)


def ended(book: Book, event: Ended, now: float) -> None:
    """A launch is verified gone, or it is not and needs a human."""
    session = book.of_launch(event.launch_id)
    if session is None:
        return
    if event.ok and session.state is State.ENDING:
        session = bury(book, session, now)
    if event.ok and session.launch is not None and session.launch.ended_at is not None:
        ending = session.state is State.ENDING
        gone = [axis for axis in (Axis.SERVER, Axis.RUNTIME, Axis.PROCESS) if ending and axis in session.axes]
        facts = tuple(Fact(axis, "dead", "verified", now, conclusive=True) for axis in gone)
        session = book.keep(book.read_axes(book.close(session), facts))
    held = session.hold is not None and session.hold.reason == "survivor"
    if not event.ok:
        if session.state is State.ENDING or held:
            book.become(session, now, State.STUCK, f"could not be ended: {event.why}", hold=None, after=session.after)
    elif held and session.state in (State.CRASHED, State.PENDING):
        launch_when_paced(book, session, now)
    elif session.state is State.ENDING and session.after is After.STOP:
        actor = session.intent.actor if session.intent else "operator"
        book.become(session, now, State.STOPPED, f"stopped by {actor}", hold=None, after=None)
    elif session.state is State.ENDING and session.after is After.RELAUNCH:
        launch_when_paced(book, session, now)
    elif session.state is State.ENDING and session.after is After.REMOVE:
        remove(book, session, now)


def remove(book: Book, session: Session, now: float) -> None:
    """Forget a session and all that is keyed by it."""
    book.log(now, session, "session.removed")
    incidents.forget(book, session, now)
    book.forget(session)
    book.change.sessions.pop(session.id, None)
    book.change.removed.append(session.id)
    book.do(Purge(session))
