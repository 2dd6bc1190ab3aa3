"""Simulated sockets of daemon and keeper: who lives and runs makes a lost one anew, and a daemon finds its keeper by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.world import World

KEEPER, DAEMON = "keeper", "daemon"
MAKE_S = {KEEPER: 0.2, DAEMON: 1.0}  # it is woken; at its next beat
LOOK_S = 1.0
ONCE = {"made anew": True}


class Sockets:
    """Both sockets, and the line between daemon and keeper, which outlives them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lost: dict[str, float] = {}  # whose, and since when
        self.linked = False

    def lose(self, whose: str) -> None:
        """Somebody removes a socket's file, or the folder."""
        if whose not in self.lost:
            self._world.say(whose, "has lost its socket")
            self.lost[whose] = self._world.engine.now
            self._world.engine.after(MAKE_S[whose], self._make, whose)

    def bound(self, whose: str) -> None:
        """One that starts, or makes it anew, has a socket."""
        self.lost.pop(whose, None)

    def link(self) -> None:
        """A daemon that starts reaches a keeper that lives and can be found."""
        self.linked = self._world.keeper.lives and KEEPER not in self.lost

    def reboot(self) -> None:
        """A new boot has neither of the two processes."""
        self.lost.clear()
        self.linked = False

    def go_on(self, whose: str) -> None:
        """It runs again, and looks at once."""
        if whose in self.lost:
            self._make(whose)

    def _make(self, whose: str) -> None:
        world = self._world
        if whose not in self.lost or not ONCE["made anew"]:
            return
        runs = world.keeper.lives and not world.keeper.stopped if whose == KEEPER else world.daemon.hears
        if not runs:
            world.engine.after(LOOK_S, self._make, whose)
            return
        self.bound(whose)
        world.say(whose, "has made its socket anew")
        if whose == KEEPER:
            world.daemon.later(0.0, world.keeper.found)


@contextmanager
def lost_for_good() -> Iterator[None]:
    """As it was once: no socket is made anew."""
    ONCE["made anew"] = False
    try:
        yield
    finally:
        ONCE["made anew"] = True
