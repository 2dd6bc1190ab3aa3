"""Transition: the one place where a session changes its state."""

from __future__ import annotations

from typing import Any

from vigil.core.book import DOUBTED, Book
from vigil.core.model.session import Session, State, with_changes


def become(book: Book, session: Session, now: float, state: State, why: str, **changes: Any) -> Session:
    """Move a session to a state, and log the transition if the state is new."""
    moved = state is not session.state
    if state not in DOUBTED:
        changes["doubt"] = None
    changes = {"unended": "", **changes}
    changed = with_changes(session, state=state, why=why, state_since=now if moved else session.state_since, **changes)
    if moved:
        data: dict[str, Any] = {"from": session.state.value, "to": state.value, "why": why}
        if changed.hold is not None:
            data |= {"hold": changed.hold.reason, "until": changed.hold.until}
        book.log(now, changed, "session.state", **data)
    return book.keep(changed)
