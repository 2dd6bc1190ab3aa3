"""What lives and what is ended: P1, P2, P8 to P11."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.host import Body, Process
from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, EndLaunch, Persist, Spawn
from vigil.core.events import Asked, Event, Observed, Sighted, Swept
from vigil.core.model.death import Cause, Intent
from vigil.core.model.launch import Launch
from vigil.core.model.session import Session, State

if TYPE_CHECKING:
    from tests.sim.world import World


class OneAgent(Promise):
    """At most one live agent process per session identity, whatever dies, hangs or races."""

    name = "P1"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._living: dict[str, Body] = {}

    def born(self, body: Body) -> None:
        if body.agent is not None:
            before = self._living.get(body.session_id)
            self.demand(before is None or not before.lives, f"{body.launch_id} is born beside a living agent")
            self._living[body.session_id] = body


class NoHarm(Promise):
    """Policy never kills a session while a human is attached, anything shows progress, or the facts are unknown.

    It ends orphans, what a shift drains, and what gave no signs of life; it does not begin with what it knows is in use.
    """

    name = "P2"
    BY_POLICY = (Cause.POLICY, Cause.UNHEALTHY, Cause.STALLED)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._attached: dict[str, int] = {}  # how many people are in a launch, as far as that was told

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for seen in event.observed if isinstance(event, Swept) else (event,) if isinstance(event, Observed) else ():
            if seen.attached is not None:
                self._attached[seen.launch_id] = seen.attached
        for glimpse in event.glimpses if isinstance(event, Sighted) else ():  # the reaper's own look, which is newer
            if glimpse.clients is not None:
                self._attached[glimpse.launch_id] = glimpse.clients
        for effect in effects:
            for intent in effect.intents if isinstance(effect, Persist) and not isinstance(event, Asked) else ():
                session = self.world.daemon.known.get(intent.session_id)
                lives = session is not None and session.launch is not None and session.launch.ended_at is None
                if lives and intent.cause in self.BY_POLICY:
                    used = self._attached.get(intent.launch_id, 0)
                    self.demand(not used, f"{intent.id}, and a person is known to be there")
                    assert isinstance(effect, Persist)
                    self.demand(not self._is_doubted(effect, intent), f"{intent.id}, and nobody knows how it is")

    @staticmethod
    def _is_doubted(change: Persist, intent: Intent) -> bool:
        """Say whether a session was in doubt when policy began to end it."""
        moves = [entry.data for entry in change.log if entry.kind == "session.state" and entry.session_id == intent.session_id]
        return any(move["to"] == State.ENDING and move["from"] in (State.SUSPECT, State.STUCK) for move in moves[-1:])

    def started(self) -> None:
        """Who is attached is not stored: whoever begins anew asks at the last moment."""
        self._attached = {}

    def ending(self, effect: EndLaunch, body: Body | None) -> None:
        if body is None or body.agent is None or not body.pane_is_open or not body.attached:
            return
        if self._is_asked(effect.launch) or self._failed_to_start(effect.launch):
            return
        self.demand(effect.unless_attended, f"the pane of {effect.launch.id} is closed while a person is in it")

    def signalled(self, launch: Launch, body: Body, process: Process) -> None:
        if process is not body.agent or self._is_asked(launch) or self._failed_to_start(launch):
            return
        if not body.pane_is_open or (body.server and not body.server.alive):
            return
        intents = self.world.store.intents.get(launch.id, ())
        meant = any(intent.cause in self.BY_POLICY for intent in intents)
        self.demand(meant, f"{launch.id} was ended by policy, and well")
        self.demand(not body.attached, f"{launch.id} was ended by policy, and a person is in it")

    def _is_asked(self, launch: Launch) -> bool:
        """Say whether an operator wants it gone, on record."""
        session = self.world.store.sessions.get(launch.session_id)
        intents = self.world.store.intents.get(launch.id, ())
        asked = self.world.people.wants_anew(launch.session_id, self._born_at(launch))
        return session is None or asked or any(intent.cause is Cause.OPERATOR for intent in intents)

    def _born_at(self, launch: Launch) -> float:
        body = self.world.host.bodies.get(launch.id)
        return 0.0 if body is None else body.born_at

    def _failed_to_start(self, launch: Launch) -> bool:
        death = self.world.store.deaths.get(launch.id)
        return death is not None and death.cause is Cause.LAUNCH_FAILED


class IntentFirst(Promise):
    """A deliberate stop or restart is recorded before its first signal, so our own kills are never mistaken for crashes."""

    name = "P8"

    def signalled(self, launch: Launch, body: Body, process: Process) -> None:
        if process is body.agent and launch.id not in self.world.store.deaths:
            self.demand(self.world.store.intents.get(launch.id), f"{launch.id} is signalled without an intent on record")


class OnlyOurs(Promise):
    """Nothing is ever signalled but a process whose pid and start time were recorded for this very launch."""

    name = "P9"

    def signalled(self, launch: Launch, body: Body, process: Process) -> None:
        self.demand(process.launch_id == launch.id == body.launch_id, f"{launch.id} signals a process of {process.launch_id}")

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, EndLaunch):
                for named in (effect.launch.process, effect.launch.found, effect.launch.root, effect.launch.server):
                    found = self.world.host.find(named)
                    ours = found is None or found.launch_id == effect.launch.id
                    self.demand(ours, f"{effect.launch.id} names a process of another launch")


class NothingLost(Promise):
    """`kill -9` of the daemon loses nothing: the next start adopts every live session and respawns nothing that lives."""

    name = "P10"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._adopted: dict[str, str] = {}  # launches that lived when this daemon started, and nobody wanted otherwise

    def started(self) -> None:
        self._adopted = {}
        for session in self.world.store.sessions.values():
            body = self.world.host.bodies.get(session.launch.id) if session.launch else None
            if body is not None and body.lives and body.pane_is_open and session.state in (State.RUNNING, State.STARTING):
                self._adopted[session.id] = body.launch_id

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Asked):
            self._adopted.pop(event.session_id, None)
        for effect in effects:
            if isinstance(effect, Persist):
                for intent in effect.intents:  # a manifest, a shift or its silence may want it gone
                    self._adopted.pop(intent.session_id, None)
            if isinstance(effect, Spawn):
                kept = self._adopted.get(effect.session.id)
                body = self.world.host.bodies.get(kept or "")
                self.demand(body is None or not body.lives, f"{kept} lived when the daemon started, and is launched again")


class CleanIdentity(Promise):
    """Removing an identity removes all that is keyed by it and nothing else; a namesake is born clean."""

    name = "P11"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._ever: dict[str, str] = {}
        self._gone: set[str] = set()
        self._roles: set[str] = set()

    def purged(self, session: Session) -> None:
        world = self.world
        left = [body for body in world.host.bodies.values() if body.session_id == session.id]
        for body in left:
            alive = [process for process in body.processes() if process.alive]
            self.demand(not alive, f"{session.name} was removed, and {len(alive)} of its processes live")
        files = [launch_id for launch_id in world.carriers.folders if launch_id.rpartition("-")[0] == session.id]
        self.demand(not files, f"{session.name} was removed, and its files stay: {files}")

    def written(self, change: Persist) -> None:
        incidents = self.world.store.incidents.values()
        for session_id in change.removed:
            self.demand(session_id not in self.world.store.sessions, f"{session_id} is stored again after its removal")
            self.demand(
                not any(i.key.startswith(f"{session_id}/") and i.resolved_at is None for i in incidents),
                f"{session_id} was removed, and an incident of it stays open",
            )
            left = [launch.id for launch in self.world.store.launches.values() if launch.session_id == session_id]
            left += [one.id for found in self.world.store.intents.values() for one in found if one.session_id == session_id]
            self.demand(not left, f"{session_id} was removed, and these rows are stored: {left}")
            roles = [role.key for role in self.world.store.roles.values() if role.trial == session_id]
            self.demand(not roles, f"{session_id} was removed, and it is on trial for {roles}")
            for other in self.world.people.existing - {session_id}:
                self.demand(other in self.world.store.sessions, f"{other} went with {session_id}")
        for session in change.sessions:
            if session.launches == 1 and session.launch and not session.launch.ended_at:
                self.demand(not session.charges and session.last_death is None, f"{session.name} was not born clean")
            if session.id not in self._ever:
                self.demand(session.launches <= 1 and not session.deaths, f"{session.name} was not born clean")
            self._ever[session.id] = session.name
        for session_id in change.removed:
            self._gone.add(session_id)
        again = self._gone & {session.id for session in change.sessions}
        self.demand(not again, f"{again} are ids of sessions that were removed")
        self._roles -= set(change.removed_roles)
        for role in change.roles:
            fresh = role.key not in self._roles
            clean = not role.charges and role.event_at is None and not role.deaths and role.shift is None and role.trial is None
            self.demand(not fresh or clean, f"{role.key} was not born clean")
            self._roles.add(role.key)
