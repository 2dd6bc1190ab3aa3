"""Faults of signs of life: an agent gives none any more, or each too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.faults.servers import somebody_attaches
from tests.sim.faults.sizes import Strike, between

if TYPE_CHECKING:
    from tests.sim.world import World


def signs_of_life(trouble: str) -> Strike:
    """Let an agent be muted, silent or late for a while; a muted one still prints, where that is read."""

    def strike(world: World, session_id: str, size: float) -> bool:
        body = world.living(session_id)
        if body is None or world.health_of(session_id) is None:
            return False
        setattr(body, trouble, True)
        world.engine.after(between(size, 300.0, 14400.0), setattr, body, trouble, False)
        if size > 0.7:
            somebody_attaches(world, session_id, size)
        return True

    return strike
