"""Memory: no more are launched than there is room for, and a human knows when that lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Spawn
from vigil.core.events import Event, MemoryRead
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import Session

if TYPE_CHECKING:
    from tests.sim.world import World


class Admitted(Promise):
    """No more launches start than the host has memory for; a human knows of who waits longer than a minute, and of its end."""

    name = "memory"
    KEY = "host/low-memory"
    SHORT_S, SLACK_S = 60.0, 3.0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._room: int | None = None
        self._since: dict[str, float] = {}

    def started(self) -> None:
        self._room, self._since = self.world.admission.room, {}

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, MemoryRead):
            self._room = event.room
        for effect in effects:
            if isinstance(effect, Spawn) and self._room is not None:
                self._room -= 1
                self.demand(self._room >= 0, f"{effect.session.name} is launched, and there is no memory for it")
            elif isinstance(effect, Persist):
                for session in effect.sessions:
                    self._note(session)
        if isinstance(event, MemoryRead):
            self._check_told()

    def _note(self, session: Session) -> None:
        if session.hold == Hold(HoldReason.MEMORY, None):
            self.demand(self._room is not None, f"{session.name} waits for memory, and there is plenty")
            self._since.setdefault(session.id, self.world.engine.now)
        else:
            self._since.pop(session.id, None)

    def _check_told(self) -> None:
        now, told = self.world.engine.now, self.KEY in self.world.daemon.machine.incidents
        waiting = {key: since for key, since in self._since.items() if key in self.world.daemon.known}
        waited_s = max((now - since - self.world.excuses.since(since, now) for since in waiting.values()), default=0.0)
        self.demand(told or waited_s <= self.SHORT_S + self.SLACK_S, f"a launch waited {waited_s:.0f} s, and nobody was told")
        self.demand(not told or waiting, "low memory is told, and nobody waits for it")
