"""Spawning: the next launch of a session is durable before the daemon spawns it (P8)."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import Spawn
from vigil.core.handlers.conversation import next_wake
from vigil.core.handlers.summary import summarise
from vigil.core.handlers.transition import become
from vigil.core.model.launch import Launch, Mode
from vigil.core.model.progress import SAID_NOTHING
from vigil.core.model.reading import Axis, AxisValue, Reading
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State
from vigil.core.model.vitals import Vitals


def begin_launch(book: Book, session: Session, now: float) -> None:
    """Make the next launch with a new id, and ask for its spawn."""
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
    session = replace(session, launches=number, launch=launch, vitals=_next_vitals(session, now))
    session = become(book, session, now, State.STARTING, "launching", hold=None, after=None, waking=None)
    book.change.launches.append(launch)
    book.spawning.add(launch.id)
    if book.room is not None:
        book.room -= 1
    book.do(Spawn(session, launch))


def _next_vitals(session: Session, now: float) -> Vitals:
    """Return a new launch's vitals: they keep only what its session spent, and whether it ever spoke."""
    trail = session.vitals.trail
    trail = replace(SAID_NOTHING, spoke_before=trail.spoke or trail.spoke_before)
    return replace(unheard(now), trail=trail, spent_before=session.spent)


def unheard(now: float) -> Vitals:
    """Return the vitals of a launch of which no sensor has read anything yet."""
    reading = Reading(AxisValue.UNKNOWN, "none", False, now, now, "this agent has reported nothing yet")
    return Vitals(axes={Axis.ACTIVITY: reading})
