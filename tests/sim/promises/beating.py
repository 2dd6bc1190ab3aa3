"""Signs of life: who is ended for want of them really gave none, and each change is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.excuses import Excuse
from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, LogEntry, Persist
from vigil.core.events import Event, Gap, Hooked, Launched, Observed, Swept
from vigil.core.model.death import Intent, IntentVerb
from vigil.core.model.reading import Axis
from vigil.core.model.session import PulseState, Session, State
from vigil.core.model.team import Health

if TYPE_CHECKING:
    from tests.sim.world import World


class Heartbeats(Promise):
    """Unhealthy is who missed so many signs of life in a row while somebody listened, and nobody else; that is told once.

    It is ended for that, soon, unless it printed, a person is there, or too little is known of it.
    """

    name = "health"
    WELL = ("alive", "stopped")
    SLACK_S = 60.0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sign_at: dict[str, float] = {}  # by launch, on the daemon's clock
        self._active_at: dict[str, float] = {}
        self._read: dict[str, dict[Axis, str]] = {}
        self._ill_at: dict[str, float] = {}  # when something that keeps a launch was true last
        self._promised_at: dict[str, float] = {}  # by role
        self._told: dict[str, str] = {}  # by launch
        self._deaf = Excuse()  # nobody listened
        self._killed_at = 0.0

    def decided(self, event: Event, effects: list[Effect]) -> None:
        change = effects[0] if effects and isinstance(effects[0], Persist) else None
        if change is not None:
            for role in change.roles:
                was = self.world.daemon.was_role(role.key)
                if was is None or was.spec.health != role.spec.health:
                    self._promise(role.key)
        if isinstance(event, Gap):
            self._deaf.add(self.world.engine.now - event.lasted_s, event.lasted_s)
        elif isinstance(event, Hooked):
            at = max(hook.at for hook in event.hooks)
            self._sign_at[event.launch_id] = max(at, self._sign_at.get(event.launch_id, 0.0))
        for seen in event.observed if isinstance(event, Swept) else (event,) if isinstance(event, Observed | Launched) else ():
            self._take_in(seen)
        if change is not None:
            self._check_told(change, isinstance(event, Hooked))
            for intent in change.intents:
                if intent.verb == IntentVerb.UNHEALTHY:
                    self._check_end(intent)

    def _promise(self, key: str) -> None:
        self._promised_at[key] = self.world.daemon.clock()
        for session in self.world.daemon.replicas(key):
            if session.launch is not None:
                self._told.pop(session.launch.id, None)

    def _take_in(self, seen: Observed | Launched) -> None:
        read = self._read.setdefault(seen.launch_id, {})
        ill = any(value not in self.WELL for value in read.values())
        read |= {fact.axis: fact.value for fact in seen.facts}
        attached = isinstance(seen, Observed) and bool(seen.attached)
        if ill or attached or any(value not in self.WELL for value in read.values()):
            self._ill_at[seen.launch_id] = self.world.daemon.clock()
        if isinstance(seen, Observed) and seen.active_at is not None:
            self._active_at[seen.launch_id] = seen.active_at

    def _silent_s(self, session: Session, health: Health) -> float:
        """Return for how long a sign has been missed while somebody listened."""
        launch, now, offset = session.launch, self.world.daemon.clock(), self.world.daemon.offset
        assert launch is not None and launch.started_at is not None
        begun = max(launch.started_at, self._promised_at.get(session.role or "", 0.0)) + health.grace_s
        since = max(begun, self._sign_at.get(launch.id, 0.0)) if launch.id not in self._sign_at else self._sign_at[launch.id]
        since = max(since, self._promised_at.get(session.role or "", 0.0))
        return now - since - self._deaf.since(since - offset, now - offset)

    def rebooted(self) -> None:
        self._promised_at = {}  # moments of a clock that may have been set; no launch is older now

    def killed(self) -> None:
        self._killed_at = self.world.engine.now

    def started(self) -> None:
        self._deaf.add(self._killed_at, self.world.engine.now - self._killed_at)
        stored = [session for session in self.world.store.sessions.values() if session.launch is not None]
        self._told = {s.launch.id: s.vitals.pulse.state for s in stored if s.launch is not None and s.vitals.pulse is not None}

    def _check_told(self, change: Persist, by_word: bool) -> None:
        for entry in change.log:
            if entry.kind == "session.health":
                self._check_entry(entry, by_word)
        for session in change.sessions:
            launch, pulse = session.launch, session.vitals.pulse
            if launch is not None and pulse is not None and launch.ended_at is None:
                told = self._told.get(launch.id, "unknown")
                self.demand(pulse.state == told, f"{session.name} is {pulse.state}, and {told} was told")

    def _check_entry(self, entry: LogEntry, by_word: bool) -> None:
        launch_id, before, after = entry.launch_id or "", entry.data["from"], entry.data["to"]
        told = f"{entry.session} turned from {before} to {after}"
        self.demand(before == self._told.get(launch_id, "unknown") and before != after, f"{told}, and that was told before")
        self._told[launch_id] = after
        session = self.world.daemon.known.get(entry.session_id or "")
        health = self._health_of(session) if session is not None else None
        if session is None or health is None:
            return
        if after == PulseState.HEALTHY:
            self.demand(by_word, f"{told} without a sign")
        else:
            missed = 1 if after == PulseState.LATE else health.failures
            silent_s = self._silent_s(session, health)
            self.demand(silent_s >= missed * health.heartbeat_s - 0.01, f"{told} after {silent_s:.0f} s")

    def _health_of(self, session: Session) -> Health | None:
        role = self.world.daemon.roles.get(session.role or "")
        return None if role is None else role.spec.health

    def _check_end(self, intent: Intent) -> None:
        session = self.world.daemon.was(intent.session_id)
        health = self._health_of(session) if session is not None else None
        assert session is not None and health is not None
        told, window_s = f"{session.name} is ended as unhealthy", health.failures * health.heartbeat_s
        silent_s = self._silent_s(session, health)
        self.demand(silent_s >= window_s - 0.01, f"{told} after {silent_s:.0f} s of silence")
        quiet_s = self.world.daemon.clock() - self._active_at.get(intent.launch_id, 0.0)
        self.demand(quiet_s >= window_s - 0.01, f"{told}, and printed {quiet_s:.0f} s ago")
        self.demand(session.state is State.RUNNING and session.vitals.doubt is None, f"{told}, and is {session.state} in doubt")
        read = self._read.get(intent.launch_id, {})
        self.demand(all(value in self.WELL for value in read.values()), f"{told}, and only this was known: {read}")

    def healing(self) -> None:
        """Whoever was silent for so long, and nothing keeps it, is being ended by now."""
        clock, now = self.world.daemon.clock(), self.world.engine.now
        if not self.world.daemon.hears or self.world.daemon.has_backlog:
            return
        for session in self.world.daemon.machine.sessions.values():
            health, launch = self._health_of(session), session.launch
            if health is None or launch is None or session.state is not State.RUNNING or launch.ended_at is not None:
                continue
            window_s = (health.failures + 1) * health.heartbeat_s + self.SLACK_S
            kept_at = max(self._ill_at.get(launch.id, 0.0), self._active_at.get(launch.id, 0.0), session.state_since)
            kept = session.vitals.attached > 0 or session.vitals.doubt is not None or clock - kept_at <= window_s
            deaf = self.world.excuses.since(now - window_s, now) > 0
            silent_s = self._silent_s(session, health)
            self.demand(kept or deaf or silent_s <= window_s, f"{session.name} gave no sign for {silent_s:.0f} s, and is well")
