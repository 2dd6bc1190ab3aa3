"""Want of memory: the kernel ends an agent, or somebody else just before a person ends the agent by hand."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.sim.faults.sizes import pick
from tests.sim.host import Body
from tests.sim.memory import FOREIGN

if TYPE_CHECKING:
    from tests.sim.world import World

BY_HAND_S = 1.0


def memory_runs_out(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None:
        return False
    victim = pick(size, "agent", "agent", "every agent", "child", "bystander")
    if victim == "agent":
        _end(world, body)
    elif victim == "every agent":
        for other in list(world.store.sessions):
            found = world.living(other)
            if found is not None:
                _end(world, found)
    else:
        _end_another(world, body, victim)
        world.engine.after(BY_HAND_S, _end_by_hand, world, body)
    return True


def memory_runs_out_elsewhere(world: World, session_id: str, size: float) -> bool:
    """The kernel ends an agent that was moved to a cgroup nobody knows; or a neighbour, before a person ends the agent."""
    body = world.living(session_id)
    if body is None:
        return False
    neighbours = [found for other in sorted(world.store.sessions) if other != session_id and (found := world.living(other))]
    if neighbours and pick(size, "moved", "neighbour") == "neighbour":
        _end(world, neighbours[0])
        world.engine.after(BY_HAND_S, _end_by_hand, world, body)
    else:
        _end(world, body, FOREIGN)
    return True


def _end(world: World, body: Body, cgroup: str = "") -> None:
    assert body.agent is not None
    body.unseen = False  # whoever asks much later for whom a counter grew is told of others too
    world.memory.count(cgroup or body.launch_id)
    world.host.end(body, body.agent, by_signal=signal.SIGKILL, why="memory")


def _end_another(world: World, body: Body, victim: str) -> None:
    world.memory.count(body.launch_id if victim == "child" else "")
    for child in body.children if victim == "child" else ():
        world.host.end(body, child, by_signal=signal.SIGKILL, why="memory")


def _end_by_hand(world: World, body: Body) -> None:
    assert body.agent is not None
    world.host.end(body, body.agent, by_signal=signal.SIGKILL, why="signal")
