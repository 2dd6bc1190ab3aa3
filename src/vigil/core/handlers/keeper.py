"""The keeper: while none answers, launches wait for one; that is Vigil's own failure, and nobody is charged (P15)."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.events import KeeperHeard, Unordered
from vigil.core.handlers.admission import launch_when_paced, spawn_over, start_next
from vigil.core.handlers.end import FOLLOWS
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State


def heard(book: Book, event: KeeperHeard, now: float) -> None:
    """When a keeper answers or none does any more: admit those who wait, or let launches wait."""
    book.keeper = event.trouble
    start_next(book, now)


def unordered(book: Book, event: Unordered, now: float) -> None:
    """When a launch found no keeper: it never was; its session waits as it was before."""
    before = book.unordered.get(event.launch_id)
    spawn_over(book, event.launch_id, now)
    session = book.living(event.launch_id)
    if session is None or session.launch is None or session.launch.process is not None:
        return
    book.log(now, session, "session.unordered", why=event.why)
    session = _without(book, session, before, now)
    if session.state is not State.ENDING:
        launch_when_paced(book, session, now)
    elif session.launch is not None:  # what the launch before left goes first
        book.end_all(session.launch)
    else:
        assert session.after is not None
        FOLLOWS[session.after](book, session, now)


def _without(book: Book, session: Session, before: Session | None, now: float) -> Session:
    """Return a session without its launch that no keeper was asked for; its number is free again."""
    assert session.launch is not None
    launch = replace(session.launch, ended_at=now, closed=True, summarised=True)
    book.change.launches.append(launch)
    if before is None:  # an earlier daemon began it, and only that one knew
        return book.keep(replace(session, launch=launch))
    book.by_launch.pop(launch.id, None)
    return book.keep(
        replace(
            session,
            launch=before.launch,
            launches=before.launches,
            vitals=replace(before.vitals, intent=session.vitals.intent if session.state is State.ENDING else None),
            conversation=before.conversation,
            transcript=before.transcript,
            strikes=before.strikes,
            prompted_at=before.prompted_at,
            waking=before.waking,
        )
    )
