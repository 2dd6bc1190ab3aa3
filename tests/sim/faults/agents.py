"""Faults of agents: they end, hang, leak, cannot be ended, or are never born."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.sim.faults.servers import server_is_killed
from tests.sim.faults.sizes import Strike, between, pick

if TYPE_CHECKING:
    from tests.sim.world import World


def exits(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None or body.agent is None:
        return False
    world.host.end(body, body.agent, exit_code=pick(size, 1, 2, 3, 127, 137, 143), why="itself")
    return True


def finishes(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None or body.agent is None:
        return False
    world.host.end(body, body.agent, exit_code=0, why="itself")
    return True


def is_signalled(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None or body.agent is None:
        return False
    number = pick(size, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT)
    world.host.end(body, body.agent, by_signal=number, why="signal")
    return True


def dies_at_birth(world: World, session_id: str, size: float) -> bool:
    world.dies_young[session_id] = world.engine.now + between(size, 20.0, 1800.0)
    return exits(world, session_id, size)


def ends_unseen(world: World, session_id: str, size: float) -> bool:
    """The kernel's word of its end is lost: only a look can tell."""
    body = world.living(session_id)
    if body is not None:
        body.unseen = True
    return exits(world, session_id, size)


def is_stopped(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None or body.agent is None:
        return False
    agent = body.agent
    agent.stopped = True
    world.engine.after(between(size, 5.0, 3600.0), setattr, agent, "stopped", False)
    return True


def hangs(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None:
        return False
    body.silent = body.hangs = True
    for trouble in ("silent", "hangs"):
        world.engine.after(between(size, 600.0, 14400.0), setattr, body, trouble, False)
    return True


def leaks(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None:
        return False
    body.children.append(world.host.fork("child", body.launch_id))
    return True


def cannot_be_killed(world: World, session_id: str, size: float) -> bool:
    """It sleeps in the kernel; and just then somebody wants it gone."""
    body = world.living(session_id)
    if body is None or body.agent is None:
        return False
    body.agent.unkillable_until = world.engine.now + between(size, 5.0, 900.0)
    if size > 0.5:
        world.engine.after(1.0, world.people.ask, pick(size, "stop", "restart"), session_id)
    return True


def outlives_its_pane(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None or body.server is None or not body.server.alive:
        return False
    body.ignores_hup = True
    return server_is_killed(world, session_id, size)


def loses_its_pane_while_stopped(world: World, session_id: str, size: float) -> bool:
    """Nobody sees that happen: only a look can tell."""
    body = world.living(session_id)
    if body is None or body.root is None or not body.root.alive:
        return False
    body.unseen, body.ignores_hup = True, True
    is_stopped(world, session_id, size)
    world.host.end(body, body.root, by_signal=signal.SIGHUP)
    return True


def its_number_is_a_threads(world: World, session_id: str, size: float) -> bool:
    """It dies, and a thread gets its number before anybody asks after it."""
    body = world.living(session_id)
    if body is None or body.agent is None:
        return False
    world.host.end(body, body.agent, by_signal=signal.SIGKILL, why="signal")
    return world.host.give_to_thread(body.agent)


def next_birth(fate: str) -> Strike:
    def strike(world: World, session_id: str, size: float) -> bool:
        world.carriers.births.fate[session_id] = fate
        return exits(world, session_id, size)

    return strike
