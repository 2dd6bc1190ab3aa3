"""What a death is told with: how sure its cause is, one examination, and the end of its server: P3."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.sim.host import Body, has_lost_its_pane
from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Examine, Persist, TimerKind
from vigil.core.events import Event, Exited, Launched, Observed, Orphaned, Swept, TimerFired
from vigil.core.handlers.summary import KIND
from vigil.core.model.death import Cause, Confidence, Death
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import ALIVE
from vigil.core.rules.death import CRASH_SIGNALS

if TYPE_CHECKING:
    from tests.sim.world import World

SETTLE_S = 0.6  # a server that goes within this of its agent went with it, whoever was first


class Sure(Promise):
    """A cause that is not what really happened is never called certain; what we did ourselves is, and a guess has no name."""

    name = "P3"

    def written(self, change: Persist) -> None:
        found = {launch.id for launch in change.launches if launch.found is not None}
        for death in change.deaths:
            told = f"{death.launch_id}: {death.cause} is {death.confidence}"
            certain = death.confidence is Confidence.CERTAIN
            unknown = death.confidence is Confidence.UNKNOWN
            self.demand(unknown == (death.cause is Cause.UNOBSERVED), told)
            if death.intent is not None and death.intent.cause is death.cause:
                self.demand(certain, f"{told}, and that was meant")
            elif death.cause in (Cause.LIMIT, Cause.AUTH):
                self.demand(not certain, f"{told}, and only its agent said so")
            elif certain:
                self._check_true(death, death.launch_id in found, told)

    def _check_true(self, death: Death, found: bool, told: str) -> None:
        body = self.world.host.bodies.get(death.launch_id)
        if body is None or body.agent is None or death.uptime_s is None or (body.named and not found):
            return  # never born, or the end of a shell that stood for an agent nobody found
        happened = self._happened(body)
        self.demand(death.cause in happened, f"{told}, and it was {sorted(happened)}")

    def _happened(self, body: Body) -> set[Cause]:
        """Return what really happened, whoever could see it."""
        agent, server = body.agent, body.server
        assert agent is not None
        if agent.id.boot != self.world.host.boot:
            return {Cause.HOST_REBOOTED}
        found = {Cause.SERVER_DIED} if server and not server.alive and server.ended_at <= agent.ended_at + SETTLE_S else set()
        if has_lost_its_pane(body):
            found |= {Cause.PANE_CLOSED}
        if body.ended_by == "vigil":
            return found | {Cause.SERVER_DIED}  # an orphan that was replaced; what else policy ends has its intent
        found |= {met.cause for met in body.met}
        return found | {self._by_itself(body)} | ({Cause.EARLY_EXIT} if agent.exit_code == 0 else set())

    def _by_itself(self, body: Body) -> Cause:
        agent = body.agent
        assert agent is not None
        if body.ended_by == "memory":
            return Cause.OOM
        if body.words is not None:
            return body.words.cause
        if agent.signal is not None:
            return Cause.CRASH if agent.signal in CRASH_SIGNALS else Cause.KILLED_BY_UNKNOWN
        return Cause.CRASH if agent.exit_code else Cause.FINISHED


class Examined(Promise):
    """Every recorded death is examined, in the same answer and once; nothing else is."""

    name = "P3"

    def decided(self, event: Event, effects: list[Effect]) -> None:
        died = [death for effect in effects if isinstance(effect, Persist) for death in effect.deaths]
        examined = [effect for effect in effects if isinstance(effect, Examine)]
        self.demand([effect.death for effect in examined] == died, f"{died} died, {examined} are examined")
        for effect in examined:
            same = effect.launch.id == effect.death.launch_id and effect.launch.ended_at == effect.death.at
            self.demand(same, f"{effect.death.id} is examined with {effect.launch}")


class Summarised(Promise):
    """Every launch that died leaves one line of what it did: never two, and none is owed once nothing of it is left."""

    name = "P3"
    WITHIN_S = 120.0  # of one that left its pane open

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._told: Counter[str] = Counter()
        self._died: set[str] = set()

    def decided(self, event: Event, _effects: list[Effect]) -> None:
        if not isinstance(event, TimerFired) or event.kind is not TimerKind.SUMMARY:
            return
        session = self.world.daemon.machine.sessions.get(event.session_id)
        launch, death = (session.launch, session.last_death) if session is not None else (None, None)
        if launch is not None and death is not None and death.launch_id == launch.id:
            self.demand(launch.summarised, f"{launch.id} was waited for long enough, and it is not summed up")

    def written(self, change: Persist) -> None:
        self._died |= {death.launch_id for death in change.deaths}
        ended = {launch.id for launch in change.launches if launch.ended_at is not None}
        ended |= {entry.launch_id or "" for entry in change.log if entry.session_id in change.removed}  # it has no row any more
        for entry in change.log:
            if entry.kind == KIND:
                launch_id = entry.launch_id or ""
                self._told[launch_id] += 1
                self.demand(launch_id in ended, f"{launch_id} is summed up, and its own row does not say that it ended")
                self.demand(launch_id in self._died, f"{launch_id} is summed up, and has not died")
                self.demand(self._told[launch_id] == 1, f"{launch_id} is summed up again")
        for launch in change.launches:
            owed = launch.closed and launch.id in self._died and not self._told[launch.id]
            self.demand(not owed, f"nothing is left of {launch.id}, and it is not summed up")

    def calm(self) -> None:
        now = self.world.engine.now
        for session in self.world.store.sessions.values():
            launch = session.launch
            if launch is None or launch.id not in self._died or session.state in ALIVE:
                continue
            owed = now - (launch.ended_at or now) > self.WITHIN_S and not self._told[launch.id]
            self.demand(not owed, f"{launch.id} ended long ago, and it is not summed up")


class ServerDied(Promise):
    """The end of a tmux server without an intent is logged once: with its agent's death, or before an agent that lives on."""

    name = "P3"
    WITHIN_S = 60.0  # what could not be seen when it happened is seen on a pass

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._told: Counter[str] = Counter()
        self._known_at: dict[str, float] = {}  # when the end of a launch's server was said to the machine

    def decided(self, event: Event, effects: list[Effect]) -> None:
        now = self.world.daemon.clock()
        if isinstance(event, Exited) and event.exit.server_ended:
            self._known_at.setdefault(event.exit.launch_id, now)
        elif isinstance(event, Orphaned) and event.what == "server":
            self._known_at.setdefault(event.launch_id, now)
        for seen in event.observed if isinstance(event, Swept) else (event,) if isinstance(event, Observed | Launched) else ():
            if any(fact.axis is Axis.SERVER and fact.value == AxisValue.DEAD and fact.conclusive for fact in seen.facts):
                self._known_at.setdefault(seen.launch_id, now)

    def written(self, change: Persist) -> None:
        for entry in change.log:
            if entry.kind == "server.died":
                self._told[entry.launch_id or ""] += 1
                self._check_told(entry.launch_id or "")
        for death in change.deaths:
            if death.cause is Cause.SERVER_DIED and self._is_news(death):
                self.demand(self._told[death.launch_id], f"the server of {death.launch_id} died, and nobody logged it")

    def _check_told(self, launch_id: str) -> None:
        self.demand(self._told[launch_id] == 1, f"the server of {launch_id} died {self._told[launch_id]} times")
        body = self.world.host.bodies.get(launch_id)
        self.demand(body is not None and self._died(body), f"the server of {launch_id} did not die, and is said to have")

    def _is_news(self, death: Death) -> bool:
        """Say whether a server died, and that was known before anybody wanted anything of it."""
        body, known_at = self.world.host.bodies.get(death.launch_id), self._known_at.get(death.launch_id)
        if body is None or known_at is None or not self._died(body):
            return False
        return death.intent is None or known_at <= death.intent.at

    @staticmethod
    def _died(body: Body) -> bool:
        """Say whether its server ended, and not by us."""
        return body.server is not None and not body.server.alive and body.server.ended_by != "vigil"

    def calm(self) -> None:
        now = self.world.engine.now
        for session in self.world.store.sessions.values():
            body = self.world.host.bodies.get(session.launch.id) if session.launch else None
            orphaned = body is not None and body.lives and session.state in ALIVE and self._died(body)
            if body is not None and body.server is not None and orphaned and now - body.server.ended_at > self.WITHIN_S:
                self.demand(self._told[body.launch_id], f"{body.launch_id} outlived its server, and nobody logged that")
