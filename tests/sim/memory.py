"""Simulated want of memory: what the kernel counts when it ends somebody, and what daemon and keeper can read of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.host import Body
from vigil.core.model.death import Oom

if TYPE_CHECKING:
    from tests.sim.world import World

FOREIGN = "a cgroup that nobody knows"
SETTLE_S = 2.0  # a count this young may be that of a death that is being looked into


class Memory:
    """The kernel's counters, and how far the daemon has read that of the host."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._kills: list[tuple[float, str]] = []  # when, and in the cgroup of which launch
        self.begin()

    def begin(self) -> None:
        """A new daemon begins with the counter as it is."""
        self._read = len(self._kills)
        self._grown = (-SETTLE_S, 0)

    def count(self, launch_id: str = "") -> None:
        """The kernel ends a process, of a launch or of nobody we know."""
        self._kills.append((self._world.engine.now, launch_id))

    def ask(self) -> int:
        """Return by how much the host's counter has grown; all who die together are told the same."""
        now, kills = self._world.engine.now, len(self._kills)
        if kills > self._read:
            self._grown, self._read = (now, kills - self._read), kills
        at, by = self._grown
        return by if now - at < SETTLE_S else 0

    def account(self, body: Body) -> Oom:
        """Return what a keeper can say of an agent that a SIGKILL ended just now."""
        world = self._world
        recent = [launch_id for at, launch_id in self._kills if world.engine.now - at < SETTLE_S]
        own = recent.count(body.launch_id) if world.has_cgroups else None
        named = body.ended_by == "memory" if world.log_readable else None
        moved = named is None and own == 0 and recent
        beside = [launch_id for launch_id in recent if launch_id not in ("", FOREIGN, body.launch_id)]
        cgroup = f"/{body.launch_id}" if world.has_cgroups else ""
        return Oom(named, cgroup, own, len(recent), len(beside) if moved else None)
