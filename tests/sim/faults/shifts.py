"""Shifts, and what comes between: a bad generation, a person in an old pane, a daemon that is killed, somebody who gives up."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.sim.faults.servers import somebody_attaches
from tests.sim.faults.sizes import Strike, between, pick
from tests.sim.manifests import change_commands

if TYPE_CHECKING:
    from tests.sim.world import World

SETTLED_S = 11.0  # then new replicas that say nothing are ready


def shifts_a_team(world: World, session_id: str, size: float) -> bool:
    """Perhaps after a change of what its roles run."""
    role = world.role_of(session_id)
    if role is None:
        return False
    if size > 0.3:
        world.people.manifest = change_commands(Random(size), world.people.manifest)
        world.people.apply()
    return world.people.shift(role.spec.team, between(size, 15.0, 400.0))


def shift_meets(what: str) -> Strike:
    def strike(world: World, session_id: str, size: float) -> bool:
        role = world.role_of(session_id)
        if role is None or not shifts_a_team(world, session_id, size):
            return False
        after_s = pick(size, between(size, 0.05, 2.0), SETTLED_S + between(size, 0.01, 20.0))
        world.engine.after(after_s, MEETINGS[what], world, session_id, role.spec.team, size)
        if what == "a bad generation":
            world.bad_generation[role.key] = (world.daemon.clock() - 1.0, pick(size, 0.1, 5.0, SETTLED_S + 2.0, 30.0))
        return True

    return strike


def _a_person(world: World, session_id: str, team: str, size: float) -> None:
    for session in list(world.daemon.known.values()):
        if session.role is not None:
            somebody_attaches(world, session.id, size)


def _a_kill(world: World, session_id: str, team: str, size: float) -> None:
    world.take_daemon_down(between(size, 0.2, 600.0))


def _an_abort(world: World, session_id: str, team: str, size: float) -> None:
    world.people.abort(team)


def _nothing_more(world: World, session_id: str, team: str, size: float) -> None:
    """What it meets is in its replicas."""


MEETINGS = {
    "a person": _a_person,
    "a kill": _a_kill,
    "an abort": _an_abort,
    "a bad generation": _nothing_more,
}
