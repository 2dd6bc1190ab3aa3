"""Faults of the host, and people who type at the worst moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.faults.agents import exits
from tests.sim.faults.sizes import Strike, between, pick

if TYPE_CHECKING:
    from tests.sim.world import World


def host_sleeps(world: World, session_id: str, size: float) -> bool:
    for_s = between(size, 10.0, 7200.0)
    still_s = max(0.0, world.excuses.until - world.engine.now)  # what is slow or full now goes on being so after it
    world.deafen(for_s)
    world.excuse(for_s + still_s)
    world.engine.suspend(for_s)
    world.daemon.stands_still()
    return True


def host_reboots(world: World, session_id: str, size: float) -> bool:
    world.reboot(
        down_s=between(size, 20.0, 600.0), clock_set_s=pick(size, 0.0, 0.0, 0.0, 3600.0, -3600.0, 60.0, -60.0, -86400.0)
    )
    return True


def somebody_types(verb: str) -> Strike:
    def strike(world: World, session_id: str, size: float) -> bool:
        moment = pick(size, "spawn", "end", "death", "now", "now")
        if verb == "rm":
            world.remove_and_declare_again(session_id, between(size, 1.0, 1800.0))
        elif moment == "now":
            world.people.ask(verb, session_id)
        else:
            world.people.worst[moment, session_id] = verb
            exits(world, session_id, size)
        return True

    return strike
