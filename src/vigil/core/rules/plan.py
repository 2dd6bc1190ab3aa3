"""Plan: the steps that make a workspace as declared, and the slots that stay held; applied twice, it has no steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import count, islice

from vigil.core.model.replace import replace
from vigil.core.model.restart import After, HoldReason
from vigil.core.model.session import ALIVE, Session, Spec, State
from vigil.core.model.team import Manifest, Role, RoleSpec
from vigil.words import some

RESTING = {  # a replica rests in these until a person acts, and keeps its slot
    State.STOPPED: "an operator stopped it",
    State.SUCCEEDED: "it finished",
    State.PARKED: "it was put to sleep",
    State.FAILED: "it failed and waits for a person",
    State.STUCK: "it needs a human",
}


class PlanVerb(StrEnum):
    DECLARE = "declare"  # a role that is new, or whose policy changed
    CREATE = "create"
    UPDATE = "update"  # not running: its next launch is as declared
    START = "start"  # what a new boot of the host left waiting
    REPLACE = "replace"
    DRAIN = "drain"
    FORGET = "forget"  # a role of which nothing is left


@dataclass(frozen=True, slots=True)
class PlanStep:
    do: PlanVerb
    role: str
    slot: str | None
    why: str
    index: int | None = None  # of a slot that is to be filled


@dataclass(frozen=True, slots=True)
class Held:
    """A slot that a plan leaves alone though it differs, why, and until when."""

    slot: str
    reason: str
    why: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[PlanStep, ...] = ()
    held: tuple[Held, ...] = ()


def make_plan(
    manifest: Manifest,
    roles: Mapping[str, Role],
    sessions: Iterable[Session],
    at_once: bool = False,
    only: Collection[str] | None = None,
) -> Plan:
    """Plan what makes a workspace as declared; `at_once` restarts old commands, `only` names roles."""
    slots: dict[str, dict[int, Session]] = defaultdict(dict)
    for session in sessions:
        if session.role is not None:
            slots[session.role][session.index] = session
    steps: list[PlanStep] = []
    held: list[Held] = []
    for wanted in manifest.roles:
        if only is None or wanted.key in only:
            for found in _compare(wanted, roles.get(wanted.key), slots.get(wanted.key, {}), at_once):
                (steps if isinstance(found, PlanStep) else held).append(found)  # type: ignore[arg-type]
    declared = {wanted.key for wanted in manifest.roles}
    for key, role in roles.items():
        if role.spec.workspace == manifest.workspace and key not in declared and (only is None or key in only):
            why = "not in the manifest any more" if manifest.roles else "taken down"  # a manifest file never declares nothing
            steps += _drain(key, slots.get(key, {}).values(), f"its role is {why}")
            steps.append(PlanStep(PlanVerb.FORGET, key, None, f"it is {why}"))
    return Plan(tuple(steps), tuple(held))


def _compare(wanted: RoleSpec, known: Role | None, slots: Mapping[int, Session], at_once: bool) -> Iterator[PlanStep | Held]:
    if known is not None and known.shift is not None and known.spec != wanted:
        words = f"it is being shifted; apply this when that is over, or end it: vigil shift {wanted.team} --abort"
        yield Held(wanted.key, "shift", words, known.shift.until)
        return
    yield from _declare(wanted, known)
    yield from _fill(wanted, known, slots, at_once)


def slots_for(role: Role | None, replicas: int, there: Mapping[int, Session]) -> tuple[int, ...]:
    """Plan a role's slots for so many replicas: the newest go, the lowest free come."""
    slots = () if role is None else role.slots
    oldest = sorted(slots, key=lambda i: (i not in there, there[i].created_at if i in there else 0.0, i))
    kept = oldest[:replicas]
    leaving = {index for index, session in there.items() if is_leaving(session)}
    # A shift needs free indexes: a name never has two live agents (P1).
    free = (index for index in count() if index not in slots and index not in leaving)
    return tuple(sorted([*kept, *islice(free, replicas - len(kept))]))


def _declare(wanted: RoleSpec, known: Role | None) -> Iterator[PlanStep]:
    if known is None:
        yield PlanStep(PlanVerb.DECLARE, wanted.key, None, f"it is new, with {some(wanted.replicas, 'replica')}")
    elif known.spec != wanted:
        yield PlanStep(PlanVerb.DECLARE, wanted.key, None, f"it changed: {', '.join(_changed(known.spec, wanted))}")


def _changed(before: RoleSpec, after: RoleSpec) -> list[str]:
    own = [name for name in _names(RoleSpec) if name != "spec" and getattr(before, name) != getattr(after, name)]
    return own + [name for name in _names(Spec) if getattr(before.spec, name) != getattr(after.spec, name)]


def _names(kind: type[RoleSpec] | type[Spec]) -> list[str]:
    return [field.name for field in fields(kind)]


def _fill(wanted: RoleSpec, known: Role | None, there: Mapping[int, Session], at_once: bool) -> Iterator[PlanStep | Held]:
    slots = slots_for(known, wanted.replicas, there)
    for index in slots:
        name, session = wanted.slot(index), there.get(index)
        if session is None:
            yield PlanStep(PlanVerb.CREATE, wanted.key, name, "nobody has this slot", index)
        elif is_leaving(session):
            yield Held(name, "leaving", "what had this slot is being removed")
        elif not is_same(session.spec, wanted.spec):
            yield _differs(wanted, session, at_once)
            yield from _start(wanted, session)
        elif session.waits_for is HoldReason.COLD_START:
            yield from _start(wanted, session)
        elif session.hold is not None:
            yield Held(name, session.hold.reason, session.why, session.hold.until)
        elif session.state in RESTING:
            yield Held(name, session.state.value, RESTING[session.state])
    wanted_slots = {*slots, *(known.shift.old + known.shift.new if known is not None and known.shift is not None else ())}
    extra = (session for index, session in there.items() if index not in wanted_slots)
    yield from _drain(wanted.key, extra, f"{some(wanted.replicas, 'replica is', 'replicas are')} wanted")


def _start(wanted: RoleSpec, session: Session) -> Iterator[PlanStep]:
    if session.waits_for is HoldReason.COLD_START:
        yield PlanStep(PlanVerb.START, wanted.key, session.name, session.why)


def _differs(wanted: RoleSpec, session: Session, at_once: bool) -> PlanStep | Held:
    """Plan the step for a replica that differs: a running one needs `at_once`."""
    if session.state not in ALIVE:
        return PlanStep(PlanVerb.UPDATE, wanted.key, session.name, "its next launch runs what is declared now")
    if at_once:
        return PlanStep(PlanVerb.REPLACE, wanted.key, session.name, "it runs what was declared before")
    words = f"it runs what was declared before; vigil shift {wanted.team} rolls it in, vigil up --replace restarts it"
    return Held(session.name, "changed", words)


def _drain(key: str, sessions: Iterable[Session], why: str) -> Iterator[PlanStep]:
    """Plan which replicas drain, the newest first."""
    staying = [session for session in sessions if not is_leaving(session)]
    for session in sorted(staying, key=lambda session: (session.created_at, session.index), reverse=True):
        yield PlanStep(PlanVerb.DRAIN, key, session.name, why)


def is_leaving(session: Session) -> bool:
    """Say for a plan whether a session is being removed, which frees its slot."""
    return session.after is After.REMOVE


def is_same(one: Spec, other: Spec) -> bool:
    """Say for a plan whether two specs make the same replica, restart policies apart."""
    return replace(one, restart=other.restart) == other
