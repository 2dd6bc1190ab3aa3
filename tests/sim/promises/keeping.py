"""Our own failures: P15, as far as launches wait for a keeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Spawn
from vigil.core.events import Event, KeeperHeard
from vigil.core.model.restart import HoldReason
from vigil.core.model.session import Session, State

if TYPE_CHECKING:
    from tests.sim.world import World


class WaitsForKeeper(Promise):
    """While no keeper answers nothing is launched, and that is said; who waited is launched once one does, at the pace."""

    name = "P15"
    PACE = 4

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._trouble = ""

    def started(self) -> None:
        self._trouble = ""

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, KeeperHeard):
            self._trouble = event.trouble
        for effect in effects:
            if isinstance(effect, Spawn):
                self.demand(not self._trouble, f"{effect.session.name} is launched, and there is no keeper: {self._trouble}")
        if isinstance(event, KeeperHeard) and not event.trouble:
            waiting = [session for session in self.world.daemon.known.values() if _waits(session)]
            self.demand(not waiting or self._is_full(), f"{waiting and waiting[0].name} waits for a keeper that answers")

    def _is_full(self) -> bool:
        starting = [
            s for s in self.world.daemon.known.values() if s.state is State.STARTING and s.launch and not s.launch.process
        ]
        room = self.world.admission.room
        return len(starting) >= self.PACE or (room is not None and room <= len(starting))

    def calm(self) -> None:
        waiting = [session.name for session in self.world.store.sessions.values() if _waits(session)]
        self.demand(not waiting, f"{waiting} wait for a keeper, and one answers")


def _waits(session: Session) -> bool:
    return session.waits_for is HoldReason.KEEPER
