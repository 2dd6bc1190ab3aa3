"""Faults of sockets: those of daemon and keeper are removed, and then something else happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.faults.sizes import between
from tests.sim.sockets import DAEMON, KEEPER

if TYPE_CHECKING:
    from tests.sim.world import World

MADE_S = 1.5  # within that it is made anew, and who waited for it has tried again


def keeper_loses_its_socket(world: World, session_id: str, size: float) -> bool:
    """Then, mostly, the daemon dies: the next one has to find the keeper."""
    if not world.keeper.lives:
        return False
    world.excuse(MADE_S)
    world.sockets.lose(KEEPER)
    if size > 0.2:
        world.take_daemon_down(between(size, 0.05, 600.0))
    return True


def daemon_loses_its_socket(world: World, session_id: str, size: float) -> bool:
    """Then somebody types, at once."""
    if not world.daemon.runs:
        return False
    world.sockets.lose(DAEMON)
    if size > 0.8:
        world.sockets.lose(KEEPER)  # the whole folder
    if size > 0.5:
        world.people.ask("restart", session_id)
    return True
