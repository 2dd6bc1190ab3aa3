"""That the watch is watched: its own parts find each other again (P15)."""

from __future__ import annotations

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect
from vigil.core.events import Event


class SocketsBack(Promise):
    """A lost socket is back within 5 s, and the daemon speaks to its keeper."""

    name = "P15"
    BACK_S = 5.0

    def decided(self, event: Event, effects: list[Effect]) -> None:
        self._check()

    def calm(self) -> None:
        self._check()
        self.demand(not self.world.sockets.lost, f"{sorted(self.world.sockets.lost)} has no socket long after the last fault")
        self.demand(self.world.sockets.linked, "the daemon has no line to a keeper long after the last fault")

    def _check(self) -> None:
        now = self.world.engine.now
        for whose, since in self.world.sockets.lost.items():
            late_s = now - since - self.world.excuses.since(since, now)
            self.demand(late_s <= self.BACK_S, f"the {whose}'s socket has been lost for {now - since:.1f} s")
