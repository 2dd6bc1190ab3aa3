"""The simulated reaper: it looks at what lives from time to time, and sees who is attached and which server hangs.

What changes between its look and the kill is compared once more by the carriers, as a tmux server does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.host import Body
from vigil.core.events import Sighted
from vigil.core.model.sighting import Glimpse, Guard, ReapPolicy

if TYPE_CHECKING:
    from tests.sim.world import World

EVERY_S = 900.0
POLICY = ReapPolicy(idle_ttl_s=1200.0, grace_s=60.0)
GUARD = Guard("$0", 0, "/")


class Reaper:
    """Looks at every launch again and again."""

    def __init__(self, world: World) -> None:
        self._world = world

    def begin(self) -> None:
        """A new daemon looks soon after its start."""
        self._world.daemon.later(5.0, self._sweep)

    def _sweep(self) -> None:
        world = self._world
        world.daemon.later(EVERY_S, self._sweep)
        launches = [session.launch for session in world.daemon.machine.sessions.values() if session.launch is not None]
        bodies = [body for launch in launches if (body := world.host.bodies.get(launch.id)) is not None]
        world.daemon.feed(Sighted(tuple(map(self._glimpse, bodies)), (), POLICY, "reaper"))

    def _glimpse(self, body: Body) -> Glimpse:
        now, server = self._world.daemon.clock(), body.server
        if server is not None and (server.stopped or not server.alive or not body.has_socket):
            return Glimpse(body.launch_id, now, clients=None, unreadable="its tmux server gave no whole answer")
        printed_at = None if body.printed_at is None else self._world.daemon.offset + body.printed_at
        return Glimpse(body.launch_id, now, clients=body.attached, printed_at=printed_at, cpu=0.0, guard=GUARD)
