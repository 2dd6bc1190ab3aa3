"""Teams: roles are declared, changed and forgotten; their replicas are sessions like any other."""

from __future__ import annotations

from dataclasses import replace

from vigil.core.book import Book
from vigil.core.charging import replicas_of
from vigil.core.effects import LogEntry
from vigil.core.events import Respecified, RoleDeclared, RoleForgotten
from vigil.core.roles import Role


def role_declared(book: Book, event: RoleDeclared, now: float) -> None:
    """A role is new, or its policy changed: that holds at once, what runs is not touched, what was counted stays."""
    before = book.roles.get(event.spec.key)
    role = Role(event.spec, now) if before is None else replace(before, spec=event.spec)
    book.keep_role(role)
    data = {"role": role.key, "replicas": event.spec.replicas, "actor": event.actor}
    book.change.log.append(LogEntry(now, "role.declared" if before is None else "role.changed", data=data))
    for session in list(replicas_of(book, role)):
        if session.spec.restart != event.spec.spec.restart:
            book.keep(replace(session, spec=replace(session.spec, restart=event.spec.spec.restart)))


def respecified(book: Book, event: Respecified, now: float) -> None:
    """A replica's next launch runs something else."""
    session = book.sessions.get(event.session_id)
    if session is not None:
        session = book.keep(replace(session, spec=event.spec))
        book.log(now, session, "session.respecified", actor=event.actor)


def role_forgotten(book: Book, event: RoleForgotten, now: float) -> None:
    """A role is no more, and what was counted against it; replicas that still end are nobody's any more."""
    if event.key in book.roles:
        book.forget_role(event.key)
        book.change.log.append(LogEntry(now, "role.forgotten", data={"role": event.key, "actor": event.actor}))
