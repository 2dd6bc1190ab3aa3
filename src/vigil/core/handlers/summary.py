"""Summaries: each launch that ended gets one line in the event log, after its last words were read."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import Amend, SetTimer, TimerKind
from vigil.core.events import Weighed
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, with_vitals
from vigil.core.rules import summary
from vigil.core.rules.activity import KEPT_OF_DEATH
from vigil.core.rules.summary import summary_of, told

LATEST_S = 15.0  # after a death whose pane stays open
KIND = "session.summary"


def await_summary(book: Book, session: Session, now: float) -> None:
    """When a dead launch's pane stays open: let its summary wait for its last words."""
    if session.launch is not None and session.launch.ended_at is not None and not session.launch.summarised:
        book.do(SetTimer(session.id, TimerKind.SUMMARY, now + LATEST_S))


def summarise(book: Book, session: Session, now: float) -> Session:
    """Write a dead launch's summary into the event log, once; return the changed session."""
    launch, death = session.launch, session.last_death
    if launch is None or launch.ended_at is None or launch.summarised or death is None or death.launch_id != launch.id:
        return session
    summary = summary_of(session, now)
    assert summary is not None
    book.log(now, session, KIND, death=death.id, **told(summary))
    if session.vitals.recent[-KEPT_OF_DEATH:] != death.said:
        book.do(Amend(replace(death, said=session.vitals.recent[-KEPT_OF_DEATH:])))
    launch = replace(launch, summarised=True)
    book.change.launches.append(launch)
    return book.keep(replace(session, launch=launch))


def weighed(book: Book, event: Weighed, _now: float) -> None:
    """Note a launch's peak memory for its summary, also after its death."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        book.keep(with_vitals(session, tally=summary.count_memory(session.vitals.tally, event.memory_bytes)), durable=False)
