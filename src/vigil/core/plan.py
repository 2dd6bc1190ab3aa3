"""Plan: what is to be done so that a workspace is as declared; declared and actual in, steps and holds out.

Pure. Whoever shows a plan and whoever acts on it has the same value; applying the same manifest twice leaves nothing to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from vigil.core.model import Session, Spec, State
from vigil.core.roles import Manifest, Role, RoleSpec

RESTING = {  # states a replica stays in until somebody acts: its slot is its own, nothing is spawned in its place
    State.STOPPED: "an operator stopped it",
    State.SUCCEEDED: "it finished",
    State.PARKED: "it was put to sleep",
    State.FAILED: "it failed and waits for a person",
    State.STUCK: "it needs a human",
}


class Do(StrEnum):
    """What a step does."""

    DECLARE = "declare"  # a role that is new, or whose policy changed
    CREATE = "create"
    START = "start"  # what a new boot of the host left waiting
    REPLACE = "replace"
    DRAIN = "drain"
    FORGET = "forget"  # a role of which nothing is left


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do to a role, or to one of its slots."""

    do: Do
    role: str
    slot: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Held:
    """A slot that is not as declared and is left alone, why, and until when."""

    slot: str
    reason: str
    why: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is to be done, in order, and what is not."""

    steps: tuple[Step, ...] = ()
    held: tuple[Held, ...] = ()


def make_plan(manifest: Manifest, roles: Mapping[str, Role], sessions: Iterable[Session], at_once: bool = False) -> Plan:
    """Compare what is declared with what there is; `at_once` replaces what runs an old command."""
    slots: dict[str, dict[int, Session]] = defaultdict(dict)
    for session in sessions:
        if session.role is not None:
            slots[session.role][session.index] = session
    steps: list[Step] = []
    held: list[Held] = []
    for wanted in manifest.roles:
        steps += _declare(wanted, roles.get(wanted.key))
        for found in _fill(wanted, slots.get(wanted.key, {}), at_once):
            (steps if isinstance(found, Step) else held).append(found)  # type: ignore[arg-type]
    declared = {wanted.key for wanted in manifest.roles}
    for key, role in roles.items():
        if role.spec.workspace == manifest.workspace and key not in declared:
            steps += _drain(key, slots.get(key, {}).values(), "its role is not in the manifest any more")
            steps.append(Step(Do.FORGET, key, None, "it is not in the manifest any more"))
    return Plan(tuple(steps), tuple(held))


def _declare(wanted: RoleSpec, known: Role | None) -> Iterator[Step]:
    if known is None:
        yield Step(Do.DECLARE, wanted.key, None, f"it is new, with {wanted.replicas} replicas")
    elif known.spec != wanted:
        yield Step(Do.DECLARE, wanted.key, None, f"it changed: {', '.join(_changed(known.spec, wanted))}")


def _changed(before: RoleSpec, after: RoleSpec) -> list[str]:
    own = [name for name in _names(RoleSpec) if name != "spec" and getattr(before, name) != getattr(after, name)]
    return own + [name for name in _names(Spec) if getattr(before.spec, name) != getattr(after.spec, name)]


def _names(kind: type[RoleSpec] | type[Spec]) -> list[str]:
    return [field.name for field in fields(kind)]


def _fill(wanted: RoleSpec, slots: Mapping[int, Session], at_once: bool) -> Iterator[Step | Held]:
    for index in range(wanted.replicas):
        name, session = wanted.slot(index), slots.get(index)
        if session is None:
            yield Step(Do.CREATE, wanted.key, name, "nobody has this slot")
        elif not is_same(session.spec, wanted.spec):
            if at_once:
                yield Step(Do.REPLACE, wanted.key, name, "it runs what was declared before")
            else:
                yield Held(name, "changed", "it runs what was declared before; vigil up --replace changes that")
        elif session.hold is not None and session.hold.reason == "cold-start":
            yield Step(Do.START, wanted.key, name, session.why)
        elif session.hold is not None:
            yield Held(name, session.hold.reason, session.why, session.hold.until)
        elif session.state in RESTING:
            yield Held(name, session.state.value, RESTING[session.state])
    yield from _drain(wanted.key, (slots[i] for i in slots if i >= wanted.replicas), f"{wanted.replicas} replicas are wanted")


def _drain(key: str, sessions: Iterable[Session], why: str) -> Iterator[Step]:
    """End the newest first."""
    for session in sorted(sessions, key=lambda session: session.index, reverse=True):
        yield Step(Do.DRAIN, key, session.name, why)


def is_same(one: Spec, other: Spec) -> bool:
    """Say whether a replica of one would be the same as one of the other: how it comes back is not asked for."""
    return replace(one, restart=other.restart) == other
