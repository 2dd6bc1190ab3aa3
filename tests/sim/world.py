"""The simulated world: everything put together, one plan lived through from its first minute to its last."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.sim.admission import Admission
from tests.sim.agents import Agents
from tests.sim.carriers import Carriers
from tests.sim.daemon import EPOCH, Daemon
from tests.sim.engine import Engine
from tests.sim.excuses import Excuse
from tests.sim.faults import FAULTS
from tests.sim.faults.servers import go_on, somebody_attaches
from tests.sim.host import Body, Host, Process
from tests.sim.keeper import Keeper
from tests.sim.manifests import draw_manifest
from tests.sim.memory import Memory
from tests.sim.notifier import Notifier
from tests.sim.people import People, is_locked_out
from tests.sim.promises import Promises
from tests.sim.reaper import Reaper
from tests.sim.scenarios import LOOK, Fault, Plan
from tests.sim.senses import Senses
from tests.sim.silences import Silences
from tests.sim.sockets import Sockets
from tests.sim.spool import Spool
from tests.sim.store import Store
from tests.sim.story import Line
from vigil.core.effects import Effect, EndLaunch, Interrupt, Persist, Spawn
from vigil.core.events import Event
from vigil.core.model.death import Cause
from vigil.core.model.session import State
from vigil.core.model.team import Health, Role

CALM_S = 1500.0  # after the last fault: the longest backoff, the longest doubt, and a little
YOUNG_S = 3.0
SHIFTED_S = 400.0  # a shift that takes longer is aborted once faults have stopped


@dataclass
class Tally:
    """What one world lived through."""

    events: int = 0
    faults: int = 0
    session_days: float = 0.0
    deaths: int = 0
    struck: dict[str, int] = field(default_factory=dict)


class World:
    """One host with its agents, its people, its Vigil and its bad luck."""

    def __init__(self, plan: Plan, story: bool = False) -> None:
        self.plan = plan
        self.tally = Tally()
        self.story: list[Line] | None = [] if story else None
        self._chances: dict[str, Random] = {}
        self.kernel_tells = plan.seed % 3 != 0  # before 6.15 the kernel does not tell how a stranger ended
        self.log_readable = self.chances("kernel's log").random() < 0.5
        self.has_cgroups = self.chances("cgroups").random() < 0.5  # each launch has one whose kills are counted
        self.engine = Engine()
        self.host = Host(self.engine, self._ended)
        self.memory = Memory(self)
        self.admission = Admission(self)
        self.store = Store()
        self.people = People(self)
        self.spool = Spool(self)
        self.agents = Agents(self)
        self.sockets = Sockets(self)
        self.keeper = Keeper(self)
        self.notifier = Notifier(self)
        self.senses = Senses(self)
        self.reaper = Reaper(self)
        self.silences = Silences(self)
        self.carriers = Carriers(self)
        self.daemon = Daemon(self)
        self.promises = Promises(self)
        self.excuses = Excuse()  # Vigil could not act
        self.deafness = Excuse()  # the daemon was down, stopped or asleep
        self._blindness: dict[str, Excuse] = {}  # the agent of a session could not be read
        self.dies_young: dict[str, float] = {}  # until when a session's agents die at birth
        self.bad_generation: dict[str, tuple[float, float]] = {}  # of a role: sessions made since then die so long after birth
        self.down_s = 1.0  # how long the daemon stays down the next time
        self._wall_set_s = 0.0

    def chances(self, of: str) -> Random:
        """Return the chances of one thing: what befalls another does not change them, so a plan can be shrunk."""
        found = self._chances.get(of)
        if found is None:
            found = self._chances[of] = Random(f"{self.plan.seed}/{of}")
        return found

    def say(self, who: str, *words: Any) -> None:
        """Add a line to the story, if it is told."""
        if self.story is not None:
            self.story.append((self.engine.now, who, words))

    # One life

    def live(self, at_most: int | None = None) -> None:
        """Live through the plan; a promise that breaks raises."""
        end = self.plan.hours * 3600
        self.daemon.start()
        for number in range(self.plan.lone):
            self.engine.at(1.0 + number * 0.2, self.people.declare, f"n{number}")
        if self.plan.roles:
            self.people.manifest = draw_manifest(self.chances("manifest"), self.plan.roles)
            self.engine.at(5.0, self.people.apply)
        for fault in self.plan.faults:
            self.engine.at(fault.at, self._strike, fault)
        if not self.engine.run(end, at_most):
            return
        end = self.engine.now  # the host may have slept over it
        self.heal()
        if self.engine.run(end + CALM_S, at_most):
            self.promises.calm()
        self.tally.session_days = self.plan.sessions * self.plan.hours / 24

    def _strike(self, fault: Fault) -> None:
        ids = sorted(self.store.sessions)
        for turn in range(len(ids)):
            session_id = ids[(fault.target + turn) % len(ids)]
            if fault.kind == LOOK:
                self.people.revive(session_id)
                return
            self.say("fault", fault.kind, session_id)
            if FAULTS[fault.kind](self, session_id, fault.size):
                self.tally.faults += 1
                self.tally.struck[fault.kind] = self.tally.struck.get(fault.kind, 0) + 1
                return

    def heal(self) -> None:
        """No more faults; what hangs goes on, and people look after what needs them."""
        self.say("world", "no more faults")
        self.engine.frozen_until = 0.0
        self.agents.calm = True
        self.dies_young.clear()
        self.carriers.births.fate.clear()
        self.people.worst.clear()
        self.people.comes.clear()
        self.senses.trouble.clear()
        self.senses.late_s.clear()
        self.store.full, self.store.keeps, self.store.slow_s, self.store.late_s = False, False, 0.0, 0.0
        self.notifier.down = False
        self.spool.trouble = ""
        self.daemon.doom = None
        self.bad_generation.clear()
        self.promises.healing()
        for body in self.host.bodies.values():
            body.attached = 0
            body.muted = body.late_beats = body.hangs = False
            if self.role_of(body.session_id) is not None:
                body.silent = False
            if body.server is not None:
                go_on(body)
            for process in body.processes():
                process.stopped = False
                process.unkillable_until = min(process.unkillable_until, self.engine.now)
                if process.doomed:
                    self.host.end(body, process, by_signal=9, why="vigil")
            if body.named and body.command is not None and not body.lives:  # somebody leaves the shell of a dead agent
                self.host.end(body, body.command, exit_code=0, why="itself")
        self.daemon.start()
        self.admission.change(None)
        for delay_s in (30.0, 120.0, 420.0, 800.0):
            self.engine.after(delay_s, self._look_after)
        if self.plan.roles:
            self.engine.after(5.0, self.people.apply)
            self.engine.after(SHIFTED_S, self.people.abort_all)
            self.engine.after(SHIFTED_S + 10.0, self.people.apply)

    def _look_after(self) -> None:
        """What needs a human gets one: what could not be ended, an orphan nobody may replace, an agent nobody lets in."""
        for session in list(self.store.sessions.values()):
            if session.state is State.STUCK:
                self.people.look_after(session)
            elif is_locked_out(session):
                self.people.let_in(session)
            elif session.wall is not None and session.wall.cause is Cause.AUTH:
                self.agents.is_let_in(self.living(session.id))

    # What happens

    def handled(self, event: Event, effects: list[Effect]) -> None:
        """The machine has answered an event."""
        self.tally.events += 1
        for effect in effects:
            if isinstance(effect, Persist):
                self.tally.deaths += len(effect.deaths)
                for death in effect.deaths:
                    session = self.daemon.known.get(death.session_id)
                    if session is not None and self.people.worst:
                        self.people.at_moment("death", session)
            elif self.people.worst and isinstance(effect, Spawn):
                self.people.at_moment("spawn", effect.session)
            elif isinstance(effect, EndLaunch | Interrupt) and effect.launch.session_id in self.people.comes:
                somebody_attaches(self, effect.launch.session_id, self.people.comes.pop(effect.launch.session_id))
            elif self.people.worst and isinstance(effect, EndLaunch):
                session = self.daemon.known.get(effect.launch.session_id)
                if session is not None:
                    self.people.at_moment("end", session)
        if self.story is not None:
            self._tell(event, effects)

    def _tell(self, event: Event, effects: list[Effect]) -> None:
        self.say("event", event)
        for effect in effects:
            if isinstance(effect, Persist):
                for entry in effect.log:
                    self.say("log", entry)
            else:
                self.say("effect", effect)

    def born(self, body: Body) -> None:
        """A launch has come to life."""
        self.say("host", body.launch_id, "is born", "with its agent" if body.agent else "half")
        self.promises.born(body)
        self.agents.born(body)
        if self.dies_young.get(body.session_id, 0.0) > self.engine.now and body.agent is not None:
            chances = self.chances(body.session_id)
            self.engine.after(
                chances.uniform(0.01, YOUNG_S), self.host.end, body, body.agent, chances.choice((0, 1, 1)), None, "itself"
            )

        self._spoil(body)

    def _spoil(self, body: Body) -> None:
        """Let an agent of a bad generation die soon after its birth."""
        session = self.store.sessions.get(body.session_id)
        since, delay_s = self.bad_generation.get(session.role or "", (0.0, 0.0)) if session is not None else (0.0, 0.0)
        if since and session is not None and session.created_at >= since and body.agent is not None:
            self.engine.after(delay_s, self.host.end, body, body.agent, 1, None, "itself")

    def _ended(self, body: Body, process: Process) -> None:
        self.say("host", body.launch_id, process.role, "ends", process.exit_code, process.signal)
        if process is body.agent:
            if process.role == "agent" and body.root is not None and not body.named:
                body.kept.add("shim")
            self.keeper.record(body)
        self.senses.ended(body, process)

    def body(self, session_id: str) -> Body | None:
        """Return what there is of a session's newest launch."""
        session = self.store.sessions.get(session_id)
        return self.host.bodies.get(session.launch.id) if session is not None and session.launch is not None else None

    def role_of(self, session_id: str) -> Role | None:
        """Return the role of a session; a lone one has none."""
        session = self.store.sessions.get(session_id)
        return self.store.roles.get(session.role or "") if session is not None else None

    def health_of(self, session_id: str) -> Health | None:
        """Return which signs of life the role of a session promises."""
        role = self.role_of(session_id)
        return None if role is None else role.spec.health

    def living(self, session_id: str) -> Body | None:
        """Return the newest launch of a session if its agent lives."""
        body = self.body(session_id)
        return body if body is not None and body.lives else None

    def blindness_of(self, session_id: str) -> Excuse:
        """Return how long the agent of a session could not be read."""
        return self._blindness.setdefault(session_id, Excuse())

    def excuse(self, for_s: float) -> None:
        """Vigil cannot act for so long."""
        self.excuses.add(self.engine.now, for_s)

    def deafen(self, for_s: float) -> None:
        """The daemon cannot even hear for so long."""
        self.deafness.add(self.engine.now, for_s)
        self.excuses.add(self.engine.now, for_s)

    def take_daemon_down(self, for_s: float) -> None:
        """Kill the daemon; somebody starts it again after a while."""
        self.daemon.kill()
        self.went_down(for_s)

    def went_down(self, for_s: float) -> None:
        """The daemon is gone; after a while somebody starts it."""
        self.deafen(for_s)
        self.engine.after(for_s, self.daemon.start)

    def reboot(self, down_s: float, clock_set_s: float) -> None:
        """The host goes down and comes up, perhaps with its clock set."""
        self.daemon.kill()
        self.host.reboot()
        self.keeper.reboot()
        self.sockets.reboot()
        self.carriers.births.reboot()
        self.store.full, self.store.keeps, self.store.slow_s, self.store.late_s = False, False, 0.0, 0.0
        self._wall_set_s += clock_set_s
        self.daemon.offset = EPOCH + self._wall_set_s
        self.promises.rebooted()
        self.went_down(down_s)

    def remove_and_declare_again(self, session_id: str, after_s: float) -> None:
        """Somebody removes a session, and later wants one of the same name."""
        session = self.store.sessions.get(session_id)
        if session is not None:
            self.people.ask("rm", session_id)
            if session.role is None:  # the slot of a replica is filled by itself
                self.engine.after(after_s, self.people.declare, session.name)
