"""How soon and how late: no launch follows its session's death at once, and none that was decided is put off (P4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Spawn
from vigil.core.events import Applied, Asked, Event, Gap, Interrupted, MessageQueued
from vigil.core.model.death import IntentVerb
from vigil.core.model.restart import HoldReason
from vigil.core.model.session import Session, State

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
            elif isinstance(effect, Spawn) and not isinstance(event, Interrupted):  # that one was launched before, rightly
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


class Due(Promise):
    """A restart happens when it was decided to: no daemon, commit or hung call puts it off for longer than it lasts itself."""

    name = "P4"
    LATE_S = 1.0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._waiting: dict[str, Session] = {}  # in backoff, as it was durable first
        self._since: dict[str, float] = {}  # when that became durable
        self._able_since = 0.0  # a daemon is up, runs, and what it decided is durable

    def started(self) -> None:
        self._able_since = self.world.engine.now

    def rebooted(self) -> None:
        self._waiting.clear()  # moments of a clock that may have been set

    def decided(self, event: Event, effects: list[Effect]) -> None:
        daemon, now = self.world.daemon, self.world.engine.now
        if daemon.has_backlog or isinstance(event, Gap):
            self._able_since = now
        for session in self._waiting.values():
            late_s = min(daemon.clock() - _until(session), now - max(self._able_since, self._since[session.id]))
            self.demand(late_s <= self.LATE_S, f"{session.name} waits on, {late_s:.1f} s after its backoff ended")

    def written(self, change: Persist) -> None:
        for session_id in change.removed:
            self._waiting.pop(session_id, None)
        for session in change.sessions:
            before = self._waiting.pop(session.id, None)
            if _is_in_backoff(session):
                self._waiting[session.id] = session
                if before is None or before.launch != session.launch:
                    self._since[session.id] = self.world.engine.now
                self._check(before, session)

    def _check(self, before: Session | None, session: Session) -> None:
        """What was decided once is not put off, unless a person changes the policy."""
        if before is None or before.launch != session.launch or before.spec.restart != session.spec.restart:
            return
        words = f"{session.name} is to wait until {_until(session)}, and {_until(before)} was decided before"
        self.demand(_until(session) <= _until(before) + ROUNDED_S, words)


def _is_in_backoff(session: Session) -> bool:
    hold = session.hold
    waits = hold is not None and hold.reason == HoldReason.BACKOFF and hold.until is not None
    return waits and session.state in (State.CRASHED, State.PENDING)


def _until(session: Session) -> float:
    assert session.hold is not None and session.hold.until is not None
    return session.hold.until
