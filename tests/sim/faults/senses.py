"""Faults of what is read and said: probes that fail, lie by omission or answer late; hooks that get lost."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.sim.faults.sizes import Strike, between, pick
from vigil.core.model.reading import Axis

if TYPE_CHECKING:
    from tests.sim.world import World


def axis_cannot_be_read(trouble: str) -> Strike:
    def strike(world: World, session_id: str, size: float) -> bool:
        axis = (Axis.PROCESS, Axis.RUNTIME, Axis.SERVER)[int(size * 7919) % 3]
        if axis is Axis.SERVER and trouble == "omitted":
            axis = Axis.RUNTIME
        if trouble == "missing":
            axis = Axis.SERVER  # the others are always read, well or badly
        return _trouble(world, session_id, (axis,), trouble, between(size, 5.0, 450.0))

    return strike


def everything_is_confused(world: World, session_id: str, size: float) -> bool:
    """Its agent lives, is stopped or dies unseen; its pane is there or closes unseen; each axis is read in its own bad way."""
    body = world.living(session_id)
    if body is None or body.agent is None:
        return False
    kind, for_s = int(size * 7919), between(size, 20.0, 450.0)
    body.unseen, body.ignores_hup = True, True
    if kind % 2 and body.root is not None:
        if kind // 96 % 2:
            world.host.close_pane(body)
        else:
            world.host.end(body, body.root, by_signal=signal.SIGHUP)  # its server stays
    if kind // 2 % 3 == 1:
        body.agent.stopped = True
        world.engine.after(for_s, setattr, body.agent, "stopped", False)
    elif kind // 2 % 3 == 2:
        world.host.end(body, body.agent, exit_code=1, why="itself")
    for axis, number in ((Axis.PROCESS, kind // 6 % 4), (Axis.RUNTIME, kind // 24 % 4)):
        trouble = ("", "failed", "unknown", "omitted")[number]
        if trouble:
            _trouble(world, session_id, (axis,), trouble, for_s)
    return True


def nothing_can_be_read(world: World, session_id: str, size: float) -> bool:
    trouble = pick(size, "failed", "unknown")
    return _trouble(world, session_id, tuple(Axis), trouble, between(size, 5.0, 450.0))


def nobody_can_be_read(world: World, session_id: str, size: float) -> bool:
    trouble = pick(size, "failed", "unknown", "omitted")
    for other in list(world.store.sessions):
        _trouble(world, other, (Axis.PROCESS, Axis.RUNTIME), trouble, between(size, 5.0, 400.0))
    return True


def _trouble(world: World, session_id: str, axes: tuple[Axis, ...], trouble: str, for_s: float) -> bool:
    if Axis.PROCESS in axes:
        world.blindness_of(session_id).add(world.engine.now, for_s)
    for axis in axes:
        world.senses.trouble[session_id, axis] = trouble
        world.engine.after(for_s, world.senses.is_well_again, session_id, axis)
    return True


def probes_are_slow(world: World, session_id: str, size: float) -> bool:
    world.senses.late_s[session_id] = between(size, 1.0, 120.0)
    world.senses.late_until[session_id] = world.engine.now + 800.0
    world.blindness_of(session_id).add(world.engine.now, 800.0)
    world.engine.after(600.0, world.senses.is_in_time_again, session_id)
    return True


def hooks_are(trouble: str) -> Strike:
    def strike(world: World, session_id: str, size: float) -> bool:
        world.spool.trouble = trouble
        world.engine.after(between(size, 300.0, 3600.0), setattr, world.spool, "trouble", "")
        return True

    return strike
