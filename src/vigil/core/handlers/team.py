"""Teams: Vigil carries out the plan of a manifest step by step, and fills a slot that became free."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.book import Book
from vigil.core.events import Applied, Asked
from vigil.core.handlers import heartbeat, shift, watchdog
from vigil.core.handlers.charge import retry_as_declared
from vigil.core.handlers.operator import asked
from vigil.core.handlers.replica import create, respecify
from vigil.core.model.death import IntentVerb
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.team import Role, RoleSpec
from vigil.core.rules.plan import PlanStep, PlanVerb, is_leaving, make_plan, slots_for


def applied(book: Book, event: Applied, now: float) -> None:
    """Carry out the plan of a manifest for its teams, as one durable change."""
    plan = make_plan(event.manifest, book.roles, book.sessions.values(), event.at_once, event.only)
    wanted = {role.key: role for role in event.manifest.roles}
    accounts = dict(event.accounts)
    for step in plan.steps:
        STEPS[step.do](book, step, wanted.get(step.role), event.actor, now)
        if step.do is PlanVerb.DECLARE and step.role in accounts:
            book.keep_role(replace(book.roles[step.role], account=accounts[step.role]))


def _declare(book: Book, step: PlanStep, wanted: RoleSpec | None, actor: str, now: float) -> None:
    """Declare a team's role or change its policy, at once; replicas and counts stay."""
    assert wanted is not None
    before = book.roles.get(step.role)
    slots = slots_for(before, wanted.replicas, {session.index: session for session in book.replicas(step.role)})
    role = Role(wanted, now, slots=slots) if before is None else replace(before, spec=wanted, slots=slots)
    book.keep_role(role)
    kind = "role.declared" if before is None else "role.changed"
    book.log(now, None, kind, role=role.key, replicas=wanted.replicas, actor=actor)
    for session in book.replicas(role.key):
        if session.spec.restart != wanted.spec.restart:
            session = book.keep(replace(session, spec=replace(session.spec, restart=wanted.spec.restart)))
        if before is None or before.spec.health != wanted.health:
            session = heartbeat.begin(book, session, now)
        if before is not None and before.spec.retry_saturated_s != wanted.retry_saturated_s:
            retry_as_declared(book, session, role, now)
        if before is not None and before.spec.watchdog != wanted.watchdog:
            watchdog.begin(book, session, now)


def _create(book: Book, step: PlanStep, _wanted: RoleSpec | None, actor: str, now: float) -> None:
    assert step.index is not None
    create(book, book.roles[step.role], step.index, actor, now)


def _update(book: Book, step: PlanStep, wanted: RoleSpec | None, actor: str, now: float) -> None:
    assert wanted is not None
    respecify(book, _session(book, step), wanted.spec, actor, now)


def _replace(book: Book, step: PlanStep, wanted: RoleSpec | None, actor: str, now: float) -> None:
    _update(book, step, wanted, actor, now)
    _ask(IntentVerb.RESTART, book, step, actor, now)


def _forget(book: Book, step: PlanStep, _wanted: RoleSpec | None, actor: str, now: float) -> None:
    """Forget a team's role and its charges; replicas that still end have no role then."""
    role = book.roles[step.role]
    book.forget_role(step.role)
    book.log(now, None, "role.forgotten", role=step.role, actor=actor)
    shift.go_on(book, role)


STEPS: dict[PlanVerb, Callable[[Book, PlanStep, RoleSpec | None, str, float], None]] = {
    PlanVerb.DECLARE: _declare,
    PlanVerb.CREATE: _create,
    PlanVerb.UPDATE: _update,
    PlanVerb.START: lambda book, step, _wanted, actor, now: _ask(IntentVerb.START, book, step, actor, now),
    PlanVerb.REPLACE: _replace,
    PlanVerb.DRAIN: lambda book, step, _wanted, actor, now: _ask(IntentVerb.RM, book, step, actor, now),
    PlanVerb.FORGET: _forget,
}


def _session(book: Book, step: PlanStep) -> Session:
    assert step.slot is not None
    return book.sessions[book.by_name[step.slot]]


def _ask(verb: IntentVerb, book: Book, step: PlanStep, actor: str, now: float) -> None:
    asked(book, Asked(verb, _session(book, step).id, actor, step.why), now)


def follow(book: Book, now: float) -> None:
    """Fill free slots of a team's changed roles, and advance their shifts."""
    while book.touched or book.vacated:
        vacated, book.vacated = book.vacated, []
        for key, index in vacated:
            role = book.roles.get(key)
            # After `vigil rm` the role still says how many there are; `scale` is how to have fewer.
            if role is not None and index in role.wanted:
                create(book, role, index, "vigil", now)
        touched, book.touched = book.touched, set()
        for key in sorted(touched):
            if (role := book.roles.get(key)) is not None:
                _see_to(book, role, now)


def _see_to(book: Book, role: Role, now: float) -> None:
    """See to a team's role: advance its shift, or drain replicas without a slot."""
    if role.shift is not None:
        shift.advance(book, role, now)
    elif len(book.by_role.get(role.key, ())) > len(role.slots):
        for session in book.replicas(role.key):
            if session.index not in role.slots and not is_leaving(session):
                shift.drain(book, session, "policy", "its role has other slots now", now)
