"""Simulated admission: how many more launches the host has memory for, told as the real one does (daemon/sense/memory.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vigil.core.events import MemoryRead

if TYPE_CHECKING:
    from tests.sim.world import World

EVERY_S = 1.0


class Admission:
    """Reads the host's memory, and says so while it is a matter."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.room: int | None = None  # what there really is; None is plenty
        self._told: int | None = None
        self._looks = 0  # the newest round; an older one has ended

    def begin(self) -> None:
        """A new daemon has told nothing yet."""
        self._told = None
        self.look()

    def change(self, room: int | None) -> None:
        """There is more memory now, or less: the next look tells."""
        self.room = room
        self._again()

    def look(self) -> None:
        """Read how much there is, and say so if it makes a difference."""
        if self.room is None and self._told is None:
            return
        told, self._told = MemoryRead(self.room, f"there is room for {self.room}"), self.room
        self._again()
        self._world.daemon.feed(told)

    def _again(self) -> None:
        self._looks += 1
        self._world.daemon.later(EVERY_S, self._due, self._looks)

    def _due(self, look: int) -> None:
        if look == self._looks:
            self.look()
