"""Replicas: a role's sessions, each made in a slot of its own and told what to run."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.handlers.admission import launch_when_paced
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, Spec, State
from vigil.core.model.team import Role


def create(book: Book, role: Role, index: int, actor: str, now: float) -> Session:
    """Make the replica of a role's slot, a session that launches when its turn comes."""
    spec = role.spec.spec
    session = Session(role.session_id(), role.spec.slot(index), spec, now, State.PENDING, now, "declared")
    session = book.keep(replace(session, role=role.key, index=index, account=role.account))
    book.keep_role(replace(role, born=role.born + 1))
    book.log(now, session, "session.declared", actor=actor, agent=spec.agent, runtime=spec.runtime.value)
    launch_when_paced(book, session, now)
    return session


def respecify(book: Book, session: Session, spec: Spec, actor: str, now: float) -> Session:
    """Let a replica's next launch run another spec."""
    if spec.agent != session.spec.agent:  # no other agent can resume its conversation
        session = replace(session, conversation="", transcript=None, quarantined=())
    session = book.keep(replace(session, spec=spec))
    book.log(now, session, "session.respecified", actor=actor)
    return session
