"""Observing: readings of the axes are taken in; they conclude nothing here (P7)."""

from __future__ import annotations

from dataclasses import replace

from vigil.core.book import Book
from vigil.core.effects import LogEntry
from vigil.core.events import Closed, Noted, Observed


def observed(book: Book, event: Observed, _now: float) -> None:
    """Show what the axes read now."""
    session = book.living(event.launch_id)
    if session is None:
        return
    if event.attached is not None:
        session = replace(session, attached=event.attached)
    if event.active_at is not None:
        session = replace(session, last_activity_at=max(event.active_at, session.last_activity_at or 0.0))
    book.keep(book.read_axes(session, event.facts), durable=False)


def closed(book: Book, event: Closed, _now: float) -> None:
    """Show what became of the runtime of a dead launch."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        book.keep(book.read_axes(book.close(session) if event.gone else session, event.facts))


def noted(book: Book, event: Noted, now: float) -> None:
    """Log what is of no session."""
    book.change.log.append(LogEntry(now, event.kind, data=dict(event.data)))
