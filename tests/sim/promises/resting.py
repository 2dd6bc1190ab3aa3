"""How soon and how late: no launch follows its session's death at once, and none that was decided is put off (P4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Spawn
from vigil.core.events import Applied, Asked, Event, MessageQueued
from vigil.core.model.death import IntentVerb

if TYPE_CHECKING:
    from tests.sim.world import World

AT_ONCE = frozenset({IntentVerb.START, IntentVerb.RESTART, IntentVerb.RESET, IntentVerb.WAKE})
ROUNDED_S = 0.01


class Rests(Promise):
    """Whatever path leads from a death to the next launch, it is at least `base` long, unless a person asked."""

    name = "P4"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._asked: set[str] = set()  # sessions for which a person asked since their last launch

    def decided(self, event: Event, effects: list[Effect]) -> None:
        self._note(event)
        for effect in effects:
            if isinstance(effect, Persist) and isinstance(event, Applied):
                self._asked |= {entry.session_id for entry in effect.log if entry.session_id is not None}
            elif isinstance(effect, Spawn):
                self._check(effect)

    def _note(self, event: Event) -> None:
        if isinstance(event, MessageQueued):
            self._asked.add(event.session_id)
        elif isinstance(event, Asked) and event.verb in AT_ONCE:
            session = self.world.daemon.known.get(event.session_id)
            meant = {event.session_id}
            if session is not None and session.role is not None and event.verb is IntentVerb.RESET:
                meant |= {one.id for one in self.world.daemon.replicas(session.role)}
            self._asked |= meant

    def _check(self, effect: Spawn) -> None:
        session, clock = effect.session, self.world.daemon.clock()
        asked = session.id in self._asked
        self._asked.discard(session.id)
        death, policy = session.last_death, session.spec.restart
        if asked or death is None or death.launch_id != f"{session.id}-{effect.launch.number - 1}":
            return
        least_s = min(policy.base_s, policy.cap_s) * (1 - policy.jitter)
        rested_s = clock - min(death.at, clock)
        early = death.at <= clock and rested_s < least_s - ROUNDED_S
        self.demand(not early, f"{session.name} came back {rested_s:.3f} s after its death, and {least_s:g} s are the least")
