"""Faults of Vigil itself: daemon and keeper killed or stopped, a store that cannot write, nobody to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.births import DAEMON_DIES, STAGES
from tests.sim.faults.agents import exits, is_signalled
from tests.sim.faults.servers import server_is_killed
from tests.sim.faults.sizes import Strike, between, pick

if TYPE_CHECKING:
    from tests.sim.world import World

KILLS = 5


def daemon_is_killed(world: World, session_id: str, size: float) -> bool:
    world.take_daemon_down(between(size, 0.2, 3600.0))
    return True


def daemon_dies(where: str) -> Strike:
    """Kill it in its next step, and make sure there is one."""

    def strike(world: World, session_id: str, size: float) -> bool:
        if not world.daemon.runs:
            return False
        world.daemon.doom = where
        world.down_s = between(size, 0.2, 1800.0)
        return pick(size, exits, is_signalled, server_is_killed)(world, session_id, size)

    return strike


def daemon_is_stopped(world: World, session_id: str, size: float) -> bool:
    for_s = between(size, 4.0, 1200.0)
    world.deafen(for_s)
    world.daemon.block(for_s)
    return True


def keeper_is_killed(world: World, session_id: str, size: float) -> bool:
    world.keeper.kill()
    return True


def keeper_is_stopped(world: World, session_id: str, size: float) -> bool:
    for_s = between(size, 1.0, 600.0)
    world.excuse(for_s)
    world.keeper.stop(for_s)
    return True


def keeper_dies_in_birth(world: World, session_id: str, size: float) -> bool:
    """The next birth of a session takes its keeper with it, at some stage; make sure there is one."""
    world.carriers.births.fate[session_id] = STAGES[int(size * 1000) % len(STAGES)]
    return pick(size, exits, is_signalled, server_is_killed)(world, session_id, size)


def daemon_dies_in_birth(world: World, session_id: str, size: float) -> bool:
    """The daemon dies at the next birth of a session, before it gives the order; make sure there is one."""
    if DAEMON_DIES in world.carriers.births.fate.values():  # else one death would follow another for a while
        return False
    world.carriers.births.fate[session_id] = DAEMON_DIES
    world.down_s = between(size, 0.2, 1800.0)
    return pick(size, exits, is_signalled, server_is_killed)(world, session_id, size)


def keeper_hangs_in_backoff(world: World, session_id: str, size: float) -> bool:
    """An agent ends, and the keeper is stopped until after its restart is due."""
    if not pick(size, exits, is_signalled, server_is_killed)(world, session_id, size):
        return False
    return keeper_is_stopped(world, session_id, size)


def store_is_full(world: World, session_id: str, size: float) -> bool:
    for_s = between(size, 1.0, 600.0)
    world.excuse(for_s + 1.0)
    world.store.full = True
    if size > 0.5:
        world.people.declare("extra")  # and just then somebody wants one more
    world.engine.after(for_s, setattr, world.store, "full", False)
    return True


def store_fails(world: World, session_id: str, size: float) -> bool:
    """The disk has the rows and fails: what is told as failed is there, also for the next daemon."""
    for_s = between(size, 1.0, 120.0)
    world.excuse(for_s + 1.0)
    world.store.full = world.store.keeps = True

    def heal() -> None:
        world.store.full = world.store.keeps = False

    world.engine.after(for_s, heal)
    return pick(size, exits, is_signalled, server_is_killed)(world, session_id, size)


def store_is_slow(world: World, session_id: str, size: float) -> bool:
    slow_s, for_s = between(size, 0.05, 20.0), between(size, 10.0, 300.0)
    world.excuse(for_s + 2 * slow_s + 300.0)
    world.store.slow_s = slow_s
    world.engine.after(for_s, setattr, world.store, "slow_s", 0.0)
    return True


def notifier_is_down(world: World, session_id: str, size: float) -> bool:
    world.notifier.down = True
    world.engine.after(between(size, 30.0, 7200.0), setattr, world.notifier, "down", False)
    return True


def daemon_is_killed_again_and_again(world: World, session_id: str, size: float) -> bool:
    """An agent dies, and while it waits for its restart one daemon after the other is killed."""
    if not exits(world, session_id, size):
        return False
    gap_s = between(size, 0.3, 20.0)
    for number in range(KILLS):
        world.engine.after((number + 0.5) * gap_s, world.take_daemon_down, gap_s * 0.3)
    return True


def commit_is_late(world: World, session_id: str, size: float) -> bool:
    """One write takes long, that of a death: what follows from it waits for it, and no longer."""
    late_s = between(size, 1.0, 30.0)
    world.excuse(2 * late_s + 60.0)
    world.store.late_s = late_s
    return exits(world, session_id, size)


def call_hangs(world: World, session_id: str, size: float) -> bool:
    """The next end or close of a session hangs in a file or a server until its deadline."""
    hung_s = between(size, 2.0, 60.0)
    world.excuse(hung_s + 60.0)
    world.carriers.hung[session_id] = hung_s
    return exits(world, session_id, size)
