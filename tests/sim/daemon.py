"""The simulated daemon: the real machine, fed in order; what it decides is made durable first, and only then carried out.

It can be killed between any two of these steps, be stopped, or wait for a store that is slow or full. What is decided meanwhile
is kept in memory, as in the real one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.sim.adoption import adopt
from tests.sim.notifier import TELLING
from tests.sim.silences import EAGER
from tests.sim.sockets import DAEMON
from vigil.core.effects import Effect, Persist, SetTimer, Tell, TimerKind
from vigil.core.events import (
    Applied,
    Condition,
    Configured,
    Declared,
    Event,
    Gap,
    KeeperHeard,
    Launched,
    Resumed,
    TimerFired,
    Withdrawn,
)
from vigil.core.machine import Machine
from vigil.core.model.incident import IncidentKind
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.core.rules.incident import incident_of, opened

if TYPE_CHECKING:
    from tests.sim.world import World

EPOCH = 1_000_000.0
START_S = 0.01
TELL_S = 0.5
RETRY_S = 0.5
SLOW_S = 5.0
GAP_S = 3.0  # the loop beats once a second; what is later by two is a gap
Batch = tuple[Event, list[Effect]]


class Daemon:
    """One daemon after another, over one store."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.life = 0  # every start and every end is another one; what was under way in an older one is gone
        self.runs = False
        self.blocked_until = 0.0  # somebody stopped it, and its clock apart with it
        self.offset = EPOCH  # its clock is the wall's at boot, and steady from then on
        self.doom: str | None = None  # where in its next step it is killed
        self.known: dict[str, Session] = {}  # as decided
        self.roles: dict[str, Role] = {}
        self._was: dict[str, Session | None] = {}  # what the last event changed, as it was before
        self._was_role: dict[str, Role | None] = {}
        self._boots = 0  # of the host, that a daemon has started on
        self.machine = Machine()
        self._begin()

    def _begin(self) -> None:
        self._queue: deque[Event] = deque()
        self._handling = False
        self._unwritten: deque[Batch] = deque()
        self._writing = False
        self._slow = False
        self._kept: Event | None = None
        self._kept_change: Persist | None = None
        self._timers: dict[tuple[str, str], float] = {}
        self._stood_since: float | None = None
        self.blocked_until = 0.0
        self.doom = None

    def clock(self) -> float:
        """Return the time, as this daemon has it."""
        return self.offset + self._world.engine.now

    @property
    def hears(self) -> bool:
        """Say whether it can take anything in now."""
        return self.runs and self.blocked_until <= self._world.engine.now

    @property
    def has_backlog(self) -> bool:
        """Say whether something that was decided waits for the store."""
        return bool(self._unwritten)

    def start(self) -> None:
        """Take over what the last one left."""
        if self.runs:
            return
        world = self._world
        world.engine.now += START_S
        world.say("daemon", "starts")
        self._begin()
        self.life += 1
        self.runs = True
        world.sockets.bound(DAEMON)
        world.sockets.link()
        stored, incidents = world.store.read_sessions(), world.store.read_incidents(self.clock())
        self.machine = Machine(stored, incidents, roles := world.store.read_roles())
        self.known = {session.id: session for session in stored}
        self.roles = {role.key: role for role in roles}
        booted, self._boots = self._boots != world.host.boots, world.host.boots
        world.notifier.begin()
        for incident in incidents:
            if incident.resolved_at is None:
                world.notifier.tell(incident)
        world.carriers.begin()
        world.senses.begin()
        world.reaper.begin()
        world.admission.begin()  # before anybody is launched
        self._queue.append(Configured(TELLING.routes))
        self._queue.append(EAGER)
        if world.keeper.stopped:
            self._queue.append(KeeperHeard("the keeper does not answer"))
        self._queue.append(Resumed(booted))
        for session in stored:
            event = adopt(world, session)
            if event is not None:
                self._queue.append(event)
            if session.launch is not None and session.launch.found is not None and not isinstance(event, Launched):
                world.senses.watch_rest(session.launch)  # a dead agent may have left its pane open
        world.promises.started()
        self._handle_all()
        self.over(IncidentKind.LATE_DAEMON, "a new daemon has started")
        world.keeper.connected()
        world.spool.deliver()

    def kill(self) -> None:
        """End it without a word."""
        if self.runs:
            self._world.say("daemon", "is killed")
            if self._kept_change is not None:
                self._heard_written(self._kept, self._kept_change)
            self._world.promises.killed()
            self.runs = self._world.sockets.linked = False
            self.life += 1

    def _die(self) -> None:
        """It was killed in the middle of something; somebody starts it again."""
        self._world.take_daemon_down(self._world.down_s)

    def block(self, for_s: float) -> None:
        """Stop it for a while."""
        if self.runs:
            self.blocked_until = max(self.blocked_until, self._world.engine.now + for_s)
            self.stands_still()

    def stands_still(self) -> None:
        """Nobody runs us from now on: when somebody does, that is said before anything else."""
        if self.runs and self._stood_since is None:
            self._stood_since = self._world.engine.now
            self.later(0.0, self._handle_all)

    def later(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Do something later in this life; a daemon that is stopped does it when it goes on, a dead one never."""
        if self.runs:
            self._world.engine.after(delay_s, self._due, self.life, call, args)

    def _due(self, life: int, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        if life != self.life:
            return
        engine = self._world.engine
        if self.blocked_until > engine.now:
            engine.at(self.blocked_until, self._due, life, call, args)
        else:
            call(*args)

    def has_name(self, name: str) -> bool:
        """Say whether a session has a name, or is about to: a name is taken at the door."""
        declared = (event.name for event in self._queue if isinstance(event, Declared))
        return name in declared or any(session.name == name for session in self.known.values())

    def feed(self, event: Event) -> None:
        """Queue an event, and handle it as soon as we run."""
        if self.runs:
            self._queue.append(event)
            if self.blocked_until > self._world.engine.now:
                self.later(0.0, self._handle_all)
            else:
                self._handle_all()

    def report(self, kind: IncidentKind, why: str) -> None:
        """Open an incident of the host at once, recorded after; without a daemon nobody is there to tell of it."""
        if not self.runs:
            return
        fresh = incident_of(kind, None, why, self.clock())
        if not self._world.notifier.is_open(fresh.key):  # else the one that is open takes it in
            self._world.notifier.tell(opened(fresh, self._world.notifier.last(fresh.key)))
        self.feed(Condition(kind, True, why, fresh.opened_at))

    def over(self, kind: IncidentKind, why: str) -> None:
        """Resolve an incident of the host."""
        self.feed(Condition(kind, False, why, self.clock()))

    def _handle_all(self) -> None:
        if self._handling:
            return
        self._handling = True
        life = self.life
        if self._stood_since is not None:
            missed_s, self._stood_since = self._world.engine.now - self._stood_since, None
            if missed_s > GAP_S:
                self._handle(Gap(missed_s))
        while life == self.life and self._queue:
            self._handle(self._queue.popleft())
        if life == self.life:
            self._handling = False

    def _handle(self, event: Event) -> None:
        world = self._world
        before = dict(self.machine.sessions)
        effects = self.machine.handle(event, self.clock())
        shown = {**before, **self.machine.changed}
        assert {key: session for key, session in shown.items() if session is not None} == self.machine.sessions, "shown wrongly"
        world.handled(event, effects)
        self._was, self._was_role = {}, {}
        for effect in effects:
            if isinstance(effect, Persist):
                self._take_in(effect)
            elif isinstance(effect, Tell) and (self._writing or not world.store.is_well):
                self.later(TELL_S, world.notifier.tell, effect.incident)
        world.promises.decided(event, effects)
        self._unwritten.append((event, effects))
        self._write_all()

    def _take_in(self, change: Persist) -> None:
        for session_id in change.removed:
            self._was[session_id] = self.known.pop(session_id, None)
        for session in change.sessions:
            self._was.setdefault(session.id, self.known.get(session.id))
            self.known[session.id] = session
        for key in change.removed_roles:
            self._was_role[key] = self.roles.pop(key, None)
        for role in change.roles:
            self._was_role.setdefault(role.key, self.roles.get(role.key))
            self.roles[role.key] = role

    def was(self, session_id: str) -> Session | None:
        """Return a session as it was before the last event."""
        return self._was[session_id] if session_id in self._was else self.known.get(session_id)

    def was_role(self, key: str) -> Role | None:
        """Return a role as it was before the last event."""
        return self._was_role[key] if key in self._was_role else self.roles.get(key)

    def replicas(self, key: str) -> list[Session]:
        """Return the sessions of a role."""
        return [session for session in self.known.values() if session.role == key]

    def were(self, key: str) -> list[Session]:
        """Return the sessions of a role as they were before the last event."""
        before = [self.was(session_id) for session_id in {**self.known, **self._was}]
        return [session for session in before if session is not None and session.role == key]

    def _write_all(self) -> None:
        """Write what was decided, in order, and act on it; a store that is not well is waited for."""
        store, life = self._world.store, self.life
        while self.runs and life == self.life and self._unwritten and not self._writing:
            event, effects = self._unwritten[0]
            writes = bool(effects) and isinstance(effects[0], Persist)
            if writes and not store.is_well:
                self._writing = True
                self.later(SLOW_S, self._note_slow, event)
                late_s, store.late_s = store.late_s, 0.0
                self.later(max(store.slow_s, late_s) or RETRY_S, self._try, event)
                return
            if writes:
                self._write(event, effects[0])
            if life == self.life:
                self._unwritten.popleft()
                self._world.spool.settle(event)
                self._act(effects)

    def _try(self, event: Event) -> None:
        """The store has answered, or could not write."""
        self._writing = False
        store = self._world.store
        if store.full and isinstance(event, Declared):
            self._unwritten.popleft()
            withdrawn = Withdrawn(event.session_id)
            if effects := self.machine.handle(withdrawn, self.clock()):
                self._unwritten.appendleft((withdrawn, effects))
            self.known.pop(event.session_id, None)
            self._world.people.refused(event.name)
        elif store.full:
            self._keep_failed(event)
            self._writing = True
            self.later(RETRY_S, self._try, event)
            return
        else:
            event, effects = self._unwritten[0]
            life = self.life
            self._write(event, effects[0])
            if life != self.life:
                return
            self._unwritten.popleft()
            self._world.spool.settle(event)
            self._act(effects)
        if self._slow and self.runs:
            self._slow = False
            self.over(IncidentKind.LATE_DAEMON, "the store writes again")
        self._write_all()

    def _keep_failed(self, event: Event) -> None:
        """The disk failed after it had the rows: we write them again, but a daemon that is killed now has left them there."""
        if self._world.store.keeps and self._kept is not event:
            self._kept = event
            change = self._unwritten[0][1][0]
            assert isinstance(change, Persist)
            self._world.store.write(change)
            self._kept_change = change

    def _note_slow(self, event: Event) -> None:
        if self._writing and self._unwritten and self._unwritten[0][0] is event and not self._slow:
            self._slow = True
            self.report(IncidentKind.LATE_DAEMON, "the store takes long to write")

    def _write(self, event: Event, change: Effect) -> None:
        assert isinstance(change, Persist)
        if self.doom == "before-write":
            self._die()
            return
        self._world.store.write(change)
        self._kept_change = None
        self._heard_written(event, change)
        if self.doom == "after-write":
            self._die()

    def _heard_written(self, event: Event | None, change: Persist) -> None:
        """Everybody may rely on what is durable from now on."""
        assert event is not None
        self._world.people.heard(event)
        if isinstance(event, Applied):
            for entry in change.log:
                if entry.kind.startswith("session.asked-"):
                    self._world.people.asked_for(entry.session_id or "", entry.kind.removeprefix("session.asked-"), "alice")
        for session_id in change.removed:
            self._world.people.removed(session_id)
        self._world.promises.written(change)

    def _act(self, effects: list[Effect]) -> None:
        life = self.life
        for effect in effects:
            if life != self.life:
                return
            if isinstance(effect, SetTimer):
                self._timers[effect.session_id, effect.kind] = effect.at
                self.later(max(0.0, effect.at - self.clock()), self._fire, effect.session_id, effect.kind, effect.at)
            elif isinstance(effect, Tell):
                self._world.notifier.tell(effect.incident)
            elif not isinstance(effect, Persist):
                self._world.carriers.carry_out(effect)
                if self.doom == "while-acting":
                    self._die()

    def _fire(self, session_id: str, kind: TimerKind, at: float) -> None:
        if self._timers.get((session_id, kind)) == at:
            del self._timers[session_id, kind]
            self.feed(TimerFired(session_id, kind))
