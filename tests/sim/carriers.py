"""Simulated carriers: what the machine asks for happens to the simulated host; it takes time, fails, or ends half-way."""

from __future__ import annotations

import signal
import zlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim.births import Births
from tests.sim.host import Body, Process
from vigil.core.effects import CloseLaunch, Conclude, Diagnose, Effect, EndLaunch, Interrupt, Look, Purge, RepairSocket, Spawn
from vigil.core.events import Attended, Closed, Ended, Spared
from vigil.core.model.conversation import Kept, Transcript
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.session import Session

if TYPE_CHECKING:
    from tests.sim.world import World

KILLED_S = 0.05
REPORT_S = 5.0
SERVER_GRACE_S = 2.0
SURVIVOR_GRACE_S = 3.0


class Carriers:
    """Does to the simulated host what the machine asked for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.births = Births(world)
        self.folders: set[str] = set()  # launches that have files
        self.hung: dict[str, float] = {}  # by session: how long its next end or close hangs
        self.begin()

    def begin(self) -> None:
        """A new daemon has nothing under way."""
        self._busy: dict[str, deque[Callable[[], None]]] = {}

    def carry_out(self, effect: Effect) -> None:
        """Begin what was asked for."""
        if isinstance(effect, Spawn):
            self.births.spawn(effect)
        elif isinstance(effect, EndLaunch):
            self._one_at_a_time(effect.launch.id, lambda: self._end(effect))
        elif isinstance(effect, Interrupt):
            self._one_at_a_time(effect.launch.id, lambda: self._interrupt(effect.launch))
        elif isinstance(effect, CloseLaunch):
            self._one_at_a_time(effect.launch.id, lambda: self._close(effect.launch))
        elif isinstance(effect, Look):
            self._world.senses.look(effect.launch.id)
        elif isinstance(effect, Conclude):
            self._world.senses.conclude(effect.launch.id)
        elif isinstance(effect, RepairSocket):
            self._world.daemon.later(0.1, self._repair, effect.launch)
        elif isinstance(effect, Diagnose):
            self._world.silences.diagnose(effect)
        elif isinstance(effect, Purge):
            self._purge(effect.session)

    def _read_conversation(self, launch: Launch) -> Transcript | None:
        """Read what is left of a launch's conversation: of some nothing is."""
        session = self._world.daemon.known.get(launch.session_id)
        if session is None or not session.conversation:
            return None
        kept = Kept.MISSING if zlib.crc32(session.conversation.encode()) % 5 == 0 else Kept.THERE
        return Transcript(session.conversation, kept, self._world.daemon.clock())

    # Ends

    def _one_at_a_time(self, launch_id: str, work: Callable[[], None]) -> None:
        waiting = self._busy.setdefault(launch_id, deque())
        waiting.append(work)
        if len(waiting) == 1:
            work()

    def _done(self, launch_id: str) -> None:
        waiting = self._busy[launch_id]
        waiting.popleft()
        if waiting:
            waiting[0]()

    def _end(self, effect: EndLaunch) -> None:
        """End all there is of a launch, verified."""
        world, launch = self._world, effect.launch
        body = world.host.bodies.get(launch.id)
        world.promises.ending(effect, body)
        if effect.reap and body is not None and body.lives and (why := self._why_spared(effect, body)):
            world.daemon.later(0.2, self._finish, launch.id, Spared(launch.id, why))
            return
        if effect.unless_attended and not effect.reap and self._is_attended(body):
            world.daemon.later(0.0, self._finish, launch.id, Attended(launch.id, "a person is attached"))
            return
        grace_s = effect.grace_s if launch.ended_at is None else min(effect.grace_s, SURVIVOR_GRACE_S)
        agents = [] if body is None else self._agents_of(launch, body)
        self._terminate(body, launch, agents, grace_s, lambda: self._end_rest(launch, body))

    def _why_spared(self, effect: EndLaunch, body: Body) -> str:
        """Say what a tmux server would find when it compares."""
        if effect.guard is None:
            return "it was not compared"
        if body.server is not None and (body.server.stopped or not body.server.alive or not body.has_socket):
            return "unknown: its tmux server gave no answer"
        return "a person attached in the moment of the kill" if self._is_attended(body) else ""

    @staticmethod
    def _is_attended(body: Body | None) -> bool:
        return body is not None and body.attached > 0 and body.pane_is_open

    def _interrupt(self, launch: Launch) -> None:
        """Ask an agent to leave what it does; whether it ends for that is its own matter, and nobody waits for it here."""
        world, body, agent = self._world, self._world.host.bodies.get(launch.id), self._world.host.find(launch.agent)
        if self._is_attended(body):
            world.daemon.later(0.0, self._finish, launch.id, Attended(launch.id, "a person is attached"))
            return
        if body is not None and agent is not None and agent.alive:
            world.promises.signalled(launch, body, agent)
            world.host.interrupt(body, agent)
        self._done(launch.id)

    def _agents_of(self, launch: Launch, body: Body) -> list[Process]:
        """Return the processes an effect may signal: those it names; of a birth that was not told, those of its record."""
        named = [self._world.host.find(process) for process in (launch.found, launch.process)]
        known = [process for process in named if process is not None]
        if launch.process is None:
            known = [process for process in (body.agent, body.command) if process is not None]
        return [process for process in dict.fromkeys(known) if process.alive]

    def _terminate(
        self, body: Body | None, launch: Launch, processes: list[Process], grace_s: float, then: Callable[[], None]
    ) -> None:
        """TERM, its grace, KILL."""
        world = self._world
        if body is None or not processes:
            world.daemon.later(0.01, then)
            return
        for process in processes:
            world.promises.signalled(launch, body, process)
            world.host.send(body, process, signal.SIGTERM, "vigil")
        wait_s = min(grace_s, body.slow_to_end_s + 0.02)
        world.daemon.later(wait_s, self._terminated, body, launch, processes, grace_s - wait_s, then)

    def _terminated(
        self, body: Body, launch: Launch, processes: list[Process], grace_s: float, then: Callable[[], None]
    ) -> None:
        world = self._world
        if not any(process.alive for process in processes):
            then()
        elif grace_s > 0:
            world.daemon.later(grace_s, self._terminated, body, launch, processes, 0.0, then)
        else:
            for process in processes:
                world.host.send(body, process, signal.SIGKILL, "vigil")
            world.daemon.later(KILLED_S, then)

    def _end_rest(self, launch: Launch, body: Body | None) -> None:
        """The agent's end is told before its end is verified; then its children and its server go."""
        world = self._world
        if body is None:
            self._finish(launch.id, Ended(launch.id, ok=True, transcript=self._read_conversation(launch)))
            return
        if launch.process is not None and not body.lives:
            world.senses.when_reported(launch.id, REPORT_S, lambda: self._end_children(launch, body))
        else:
            self._end_children(launch, body)

    def _end_children(self, launch: Launch, body: Body) -> None:
        left = [*body.children, body.agent, body.command]  # found by the launch they carry, also an agent nobody had found
        living = [process for process in left if process is not None and process.alive]
        self._terminate(body, launch, living, SURVIVOR_GRACE_S, lambda: self._end_server(launch, body, self._verified))

    def _end_server(self, launch: Launch, body: Body, then: Callable[[Launch, Body], None]) -> None:
        world, server = self._world, body.server
        if server is None or not server.alive:
            world.daemon.later(0.01, then, launch, body)
            return
        world.promises.signalled(launch, body, server)
        world.host.send(body, server, signal.SIGTERM, "vigil")
        world.daemon.later(SERVER_GRACE_S if server.stopped else 0.05, self._server_left, launch, body, then)

    def _server_left(self, launch: Launch, body: Body, then: Callable[[Launch, Body], None]) -> None:
        assert body.server is not None
        self._world.host.send(body, body.server, signal.SIGKILL, "vigil")
        self._world.daemon.later(KILLED_S, then, launch, body)

    def _verified(self, launch: Launch, body: Body) -> None:
        left = [process for process in body.processes() if process.alive and process.role != "root"]
        if left:
            self._finish(launch.id, Ended(launch.id, ok=False, why=f"{len(left)} of its processes live on after KILL"))
        else:
            self._world.senses.forget(launch.id)
            self._finish(launch.id, Ended(launch.id, ok=True, transcript=self._read_conversation(launch)))

    def _finish(self, launch_id: str, outcome: Ended | Attended | Closed | Spared) -> None:
        """Tell the outcome; a call that hangs on the way costs its deadline first."""
        if hung_s := self.hung.pop(launch_id.rpartition("-")[0], 0.0):
            self._world.daemon.later(hung_s, self._tell, launch_id, outcome)
        else:
            self._tell(launch_id, outcome)

    def _tell(self, launch_id: str, outcome: Ended | Attended | Closed | Spared) -> None:
        self._world.daemon.feed(outcome)
        if self._world.daemon.runs and launch_id in self._busy:
            self._done(launch_id)

    def _close(self, launch: Launch) -> None:
        """The agent is dead: its server goes, its children stay."""
        body = self._world.host.bodies.get(launch.id)
        if body is None:
            self._world.daemon.later(0.01, self._finish, launch.id, Closed(launch.id, ()))
        else:
            self._end_server(launch, body, self._closed)

    def _closed(self, launch: Launch, body: Body) -> None:
        now = self._world.daemon.clock()
        facts = []
        for axis, process in ((Axis.RUNTIME, body.root), (Axis.SERVER, body.server)):
            if process is not None:
                facts.append(Fact(axis, AxisValue.ALIVE if process.alive else AxisValue.DEAD, "procfs", now, conclusive=True))
        gone = body.server is None or not body.server.alive
        if gone:
            self._world.senses.forget(launch.id)
        self._finish(launch.id, Closed(launch.id, tuple(facts), gone))

    def _repair(self, launch: Launch) -> None:
        """A living server makes its socket anew."""
        body = self._world.host.bodies.get(launch.id)
        if body is not None and body.server is not None and body.server.alive:
            body.has_socket, body.repairs = not body.server.stopped, body.server.stopped
        self._world.senses.look(launch.id)

    def _purge(self, session: Session) -> None:
        gone = {f"{session.id}-{number}" for number in range(1, session.launches + 1)}
        self.folders -= gone
        self._world.promises.purged(session)
