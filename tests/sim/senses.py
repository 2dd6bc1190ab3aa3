"""Simulated senses: how ends are seen, and what the axes read; a reading may fail, be late, or leave out what is there.

What the kernel says of a process is true whenever it says anything; everything else may be wrong.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim.host import Body, Process, has_lost_its_pane
from vigil.core.events import Exited, Found, Observed, Orphaned, RuntimeEnded, Swept
from vigil.core.model.death import Exit, Oom
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.session import Session

if TYPE_CHECKING:
    from tests.sim.world import World

SWEEP_S = 15.0
FULL_EVERY = 120  # passes; in the others what is well and was told so is not told again, because that changes nothing
SETTLE_S = 0.3
KEEPER_S = 1.0
ORPHAN_S = 1.0
PING_S = 1.0
FIND_S = 0.05
AMBIGUOUS_OVER = 128
WELL = ("alive", "stopped")


class Senses:
    """What one daemon watches and reads."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.trouble: dict[tuple[str, Axis], str] = {}  # how a session's axis is read at the moment: failed, unclear, …
        self.late_s: dict[str, float] = {}  # readings of a session come so late
        self.late_until: dict[str, float] = {}  # and the last of them has come by then
        self._watched: dict[str, Body] = {}
        self._reported: set[str] = set()
        self._oom_kills: dict[str, int] = {}  # by how much the host's counter had grown when a SIGKILL was seen
        self._seen: dict[str, tuple[object, ...]] = {}
        self._passes = 0
        self._calm_at = -1  # the moment of the last pass that had nothing to tell

    def begin(self) -> None:
        """A new daemon watches nothing yet."""
        self._watched = {}
        self._reported = set()
        self._oom_kills = {}
        self._seen = {}
        self._world.memory.begin()
        self._world.daemon.later(SWEEP_S, self._sweep)

    # Ends

    def follow(self, body: Body, session: Session) -> None:
        """Watch a launch that has come to life; whoever ended meanwhile is seen now."""
        self._watched[body.launch_id] = body
        if body.named and (session.launch is None or session.launch.found is None):
            self._world.daemon.later(FIND_S, self._find, body)
        for process in (body.server, body.root, body.command, body.agent):
            if process is not None and not process.alive and (process is not body.command or process is body.agent):
                self._saw(body, process, in_time=False)

    def watch_rest(self, launch: Launch) -> None:
        """Watch the pane that a dead agent left open."""
        body = self._world.host.bodies.get(launch.id)
        if body is not None and not launch.closed:
            self._watched[launch.id] = body
            self._reported.add(launch.id)
            if not body.pane_is_open:
                self._world.daemon.later(0.0, self._world.daemon.feed, RuntimeEnded(launch.id))

    def forget(self, launch_id: str) -> None:
        """Watch a launch no more."""
        self._watched.pop(launch_id, None)
        self._seen.pop(launch_id, None)

    def ended(self, body: Body, process: Process) -> None:
        """A process ended: a daemon that watches it sees that now, or when it goes on."""
        if body.launch_id in self._watched and self._world.daemon.runs and not body.unseen:
            self._world.daemon.later(0.001, self._saw, body, process)

    def _saw(self, body: Body, process: Process, in_time: bool = True) -> None:
        if body.launch_id not in self._watched:
            return
        if process is body.agent and self._is_found(body):
            if body.launch_id not in self._reported:
                self._saw_agent(body, in_time)
        elif body.launch_id in self._reported:
            if process is (body.root or body.command):
                self._world.daemon.feed(RuntimeEnded(body.launch_id))
        elif process.role in ("root", "server") or process is body.command:
            self._world.daemon.later(ORPHAN_S, self._await_orphan, body)

    def _is_found(self, body: Body) -> bool:
        """An agent below a shell is watched once it was found; before that the shell stands for it."""
        if not body.named:
            return True
        launch = self._launch_of(body)
        return launch is not None and launch.found is not None

    def _launch_of(self, body: Body) -> Launch | None:
        session = self._world.daemon.known.get(body.session_id)
        launch = session.launch if session else None
        return launch if launch is not None and launch.id == body.launch_id else None

    def _saw_agent(self, body: Body, in_time: bool = True) -> None:
        """Gather how an agent ended: sometimes its server's end or the keeper's word is waited for."""
        world, agent = self._world, body.agent
        assert agent is not None
        if world.kernel_tells and in_time:  # who has no pidfd of it must ask its records
            body.kept.add("kernel")
        wait_s = 0.005
        if "kernel" in body.kept and agent.signal == signal.SIGKILL:
            self._oom_kills[body.launch_id] = world.memory.ask()
            if self._oom_kills[body.launch_id] and "keeper" not in body.kept:
                wait_s += KEEPER_S
        if body.server is not None and agent.signal == signal.SIGHUP:
            wait_s += SETTLE_S
        if not body.kept & {"kernel", "keeper"}:
            wait_s += KEEPER_S
        seen_at = world.daemon.clock()
        if "keeper" in body.kept and self._is_found(body):  # which wrote down when, perhaps long ago
            seen_at = world.daemon.offset + agent.ended_at
        world.daemon.later(wait_s, self._report, body, seen_at)

    def _report(self, body: Body, seen_at: float) -> None:
        if body.launch_id in self._watched and body.launch_id not in self._reported:
            self._reported.add(body.launch_id)
            body.unseen = False  # one word gets lost, not all
            self._world.daemon.feed(Exited(self.describe(body, "daemon", seen_at)))
            if body.named and not body.pane_is_open:
                self._world.daemon.feed(RuntimeEnded(body.launch_id))

    def describe(self, body: Body, observer: str, seen_at: float | None = None) -> Exit:
        """Put together what anybody knows of how an agent ended, or the shell that stood for one nobody found."""
        world, server = self._world, body.server
        agent = body.agent if self._is_found(body) else body.command
        assert agent is not None
        body.known = frozenset(body.kept)
        at = world.daemon.offset + agent.ended_at if seen_at is None else seen_at
        code, number, source, ambiguous = agent.exit_code, agent.signal, "pidfd", False
        if "keeper" in body.kept:
            observer, source = "keeper", "keeper (wait)"
        elif "kernel" not in body.kept:
            if "shim" in body.kept:
                observer, source = "shim", "shim"
                code, number = (code if number is None else AMBIGUOUS_OVER + number), None
                ambiguous = code is not None and code > AMBIGUOUS_OVER
            else:
                code, number, source = None, None, ""
                at = world.daemon.clock()
        server_ended = server is not None and not server.alive and server.ended_at <= agent.ended_at + 2 * SETTLE_S
        root = body.root.signal if body.root is not None and not body.root.alive else None
        body.told = self._memory(body) if number == signal.SIGKILL else None
        closed = agent is body.agent and has_lost_its_pane(body)
        return Exit(
            body.launch_id,
            at,
            observer,
            code,
            number,
            ambiguous,
            source,
            server_ended,
            server.exit_code if server is not None and server_ended else None,
            server.signal if server is not None and server_ended else None,
            root,
            closed,
            oom=body.told,
            words=body.words if code is not None and agent is body.agent else None,
        )

    def _memory(self, body: Body) -> Oom | None:
        """Return what can be known of want of memory; the keeper is asked only if the host's counter has grown."""
        kills = self._oom_kills.get(body.launch_id)
        if kills == 0:
            return Oom(host_kills=0)
        if "keeper" in body.kept:
            return body.oom
        return None if kills is None else Oom(host_kills=kills)

    def conclude(self, launch_id: str) -> None:
        """Tell the end of a launch that is called dead; one whose pidfd says otherwise lives."""
        body = self._watched.get(launch_id)
        if body is not None and launch_id not in self._reported and body.agent is not None and not body.agent.alive:
            self._saw_agent(body)

    def when_reported(self, launch_id: str, within_s: float, then: Callable[[], None]) -> None:
        """Go on when the end of an agent was told, or after a while."""
        if launch_id in self._reported or launch_id not in self._watched or within_s <= 0:
            then()
        else:
            self._world.daemon.later(0.5, self.when_reported, launch_id, within_s - 0.5, then)

    def _await_orphan(self, body: Body) -> None:
        if body.lives and body.launch_id in self._watched:
            server = body.server
            of_server = server is not None and not server.alive
            ended = server if of_server else body.root or body.command
            if ended is not None and not ended.alive:
                at = self._world.daemon.offset + ended.ended_at
                what = "server" if of_server else "pane"
                self._world.daemon.feed(Orphaned(body.launch_id, at, what, ended.exit_code, ended.signal))
        elif (
            body.named and body.launch_id in self._watched and body.launch_id not in self._reported and not self._is_found(body)
        ):
            self._report(body, self._world.daemon.clock())  # the shell stood for an agent nobody found

    def _find(self, body: Body) -> None:
        """Look for an agent below its shell."""
        launch = self._launch_of(body)
        if body.launch_id not in self._watched or launch is None or launch.found is not None or launch.ended_at is not None:
            return
        if body.lives and body.agent is not None:
            now = self._world.daemon.clock()
            self._world.daemon.feed(
                Found(body.launch_id, body.agent.id, Fact(Axis.PROCESS, AxisValue.ALIVE, "procfs", now, True))
            )
        elif body.command is not None and body.command.alive:
            self._world.daemon.later(1.0, self._find, body)

    # Readings

    def is_well_again(self, session_id: str, axis: Axis) -> None:
        """An axis of a session can be read."""
        self.trouble.pop((session_id, axis), None)

    def is_in_time_again(self, session_id: str) -> None:
        """Readings of a session come at once."""
        self.late_s.pop(session_id, None)

    def look(self, launch_id: str) -> None:
        """Read all axes of a launch; a server that hangs costs its deadline."""
        body = self._watched.get(launch_id)
        if body is None or launch_id in self._reported:
            return
        wait_s = PING_S if body.server is not None and body.server.alive and body.server.stopped else 0.01
        self._world.daemon.later(wait_s, self._looked, body)

    def _looked(self, body: Body) -> None:
        seen = self._read(body)
        if seen is not None:
            self._tell(body, seen)

    def _tell(self, body: Body, seen: Observed) -> None:
        late_s = self.late_s.get(body.session_id, 0.0)
        if late_s:
            self._world.daemon.later(late_s, self._world.daemon.feed, seen)
        else:
            self._world.daemon.feed(seen)

    def _sweep(self) -> None:
        """Look at every launch; what is not plainly well is told together."""
        world = self._world
        world.daemon.later(SWEEP_S, self._sweep)
        self._passes += 1
        full = self._passes % FULL_EVERY == 0
        if not full and self._calm_at == world.engine.moments - 1:
            self._calm_at = world.engine.moments  # nothing has happened since the last pass, which found nothing
            return
        doubtful: list[Observed] = []
        looked_at = told = 0
        for launch_id, body in list(self._watched.items()):
            if launch_id in self._reported:
                continue
            looked_at += 1
            if not full and self._is_as_told(body):
                continue
            told += 1
            seen = self._read(body)
            if seen is None:
                continue
            if all(fact.value in WELL for fact in seen.facts):
                self._seen[launch_id] = self._signature(body)
                self._tell(body, seen)
            else:
                self._seen.pop(launch_id, None)
                doubtful.append(seen)
            if not world.daemon.hears:
                return
        if doubtful:
            world.daemon.feed(Swept(tuple(doubtful), looked_at))
        if not told:
            self._calm_at = world.engine.moments

    def _is_as_told(self, body: Body) -> bool:
        """Say whether a launch is plainly well, and was told so as it is."""
        session = self._world.daemon.known.get(body.session_id)
        if session is None or session.vitals.doubt is not None:
            return False
        return self._seen.get(body.launch_id) == self._signature(body)

    def _signature(self, body: Body) -> tuple[object, ...]:
        trouble = self.trouble
        agent, server, root = body.agent, body.server, body.root
        return (
            agent is not None and agent.alive,
            agent is not None and agent.stopped,
            server is None or (server.alive and not server.stopped and body.has_socket),
            root is None or root.alive,
            body.attached,
            bool(trouble) and tuple(trouble.get((body.session_id, axis), "") for axis in Axis),
        )

    def _read(self, body: Body) -> Observed | None:
        launch = self._launch_of(body)
        if launch is None or launch.process is None or launch.ended_at is not None:
            return None
        facts = self.read_facts(body, launch.found, body.named)
        lost = body.server is not None and body.server.alive and not body.has_socket
        return Observed(body.launch_id, facts, body.attached, socket_lost=lost)

    def read_facts(self, body: Body, found: ProcessId | None, named: bool, with_server: bool = True) -> tuple[Fact, ...]:
        """Read the axes as they are, then as trouble lets them be read."""
        now = self._world.daemon.clock()
        facts = []
        if body.server is not None:
            facts.append(self._server_fact(body, now) if with_server else _alive(Axis.SERVER, body.server, now))
        if named and found is None:
            facts.append(Fact(Axis.PROCESS, AxisValue.UNKNOWN, "procfs", now, why="no agent runs in it yet"))
        else:
            assert body.agent is not None
            facts.append(_alive(Axis.PROCESS, body.agent, now))
        facts.append(self._runtime_fact(body, now))
        return tuple(fact for fact in (self._troubled(body, fact) for fact in facts) if fact is not None)

    def _server_fact(self, body: Body, now: float) -> Fact:
        server = body.server
        assert server is not None
        if not server.alive:
            return Fact(Axis.SERVER, AxisValue.DEAD, "pidfd", now, conclusive=True)
        if not body.has_socket:
            return Fact(Axis.SERVER, AxisValue.UNKNOWN, "ping", now, why="its socket is gone")
        if server.stopped:
            return Fact(Axis.SERVER, AxisValue.WEDGED, "ping", now, why="no answer in 1 s")
        return Fact(Axis.SERVER, AxisValue.ALIVE, "ping", now, conclusive=True)

    def _runtime_fact(self, body: Body, now: float) -> Fact:
        if body.root is not None:
            return Fact(Axis.RUNTIME, AxisValue.ALIVE if body.root.alive else AxisValue.DEAD, "pidfd", now, conclusive=True)
        assert body.command is not None
        lives = body.command.alive or any(child.alive for child in body.children)
        return Fact(
            Axis.RUNTIME,
            AxisValue.ALIVE if lives else AxisValue.DEAD,
            "killpg",
            now,
            conclusive=not lives or body.command.alive,
        )

    def _troubled(self, body: Body, fact: Fact) -> Fact | None:
        trouble = self.trouble.get((body.session_id, fact.axis), "") if self.trouble else ""
        if not trouble:
            return fact
        if trouble == "missing":
            return None
        if trouble == "omitted":  # it is not in the list that was read, and that proves nothing
            return Fact(fact.axis, AxisValue.DEAD, "list", fact.observed_at, why="not listed")
        return Fact(fact.axis, AxisValue(trouble), "procfs", fact.observed_at, why="a probe that had bad luck")


def _alive(axis: Axis, process: Process, now: float) -> Fact:
    value = AxisValue.DEAD if not process.alive else AxisValue.STOPPED if process.stopped else AxisValue.ALIVE
    return Fact(axis, value, "procfs", now, conclusive=True)
