"""Silence: whoever works is not ended for it."""

from __future__ import annotations

from tests.sim.host import Body
from tests.sim.promises.base import Broken, Promise
from tests.sim.silences import BLIND, way_of
from vigil.core.effects import CloseInput, Effect, EndChild, Persist
from vigil.core.events import Event
from vigil.core.model.death import Cause


class Progress(Promise):
    """Policy never ends, interrupts or disturbs for its silence who shows progress, or of whom too little is known (P2)."""

    name = "progress"

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(
                effect, EndChild | CloseInput
            ):  # asked first: to put every effect into words took a third of all time
                raise Broken(self.name, f"a remedy is tried: {effect}")
            for intent in effect.intents if isinstance(effect, Persist) else ():
                body = self.world.host.bodies.get(intent.launch_id)
                hangs = body is not None and body.hangs and not self._is_blind(body)
                self.demand(intent.cause is not Cause.STALLED or hangs, f"{intent.id}, and it works: {intent.reason}")

    @staticmethod
    def _is_blind(body: Body) -> bool:
        return way_of(body) == BLIND
