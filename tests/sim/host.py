"""The simulated host: processes that live, stop and die, pids that are used again, boots: the truth the core cannot see."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.sim.engine import Engine
from vigil.core.model.death import Oom, Words
from vigil.core.model.launch import ProcessId, RuntimeKind

HANGUP_S = 0.01
THREAD = "thread"
CLOSES_S = 0.005  # the shim ends right after its agent; a server right after its last pane
SETTLE_S, ANSWERS_S = 0.3, 2.0  # a hangup is answered within these of the pane's end
PIDS = 200  # few, so that they are used again all the time


@dataclass(eq=False, slots=True)
class Process:
    """One process, as it really is."""

    id: ProcessId
    role: str  # server, root, command, agent, child; thread
    launch_id: str
    alive: bool = True
    stopped: bool = False
    exit_code: int | None = None
    signal: int | None = None
    ended_at: float = 0.0
    ended_by: str = ""  # itself, signal, hangup, vigil, memory, reboot
    unkillable_until: float = 0.0  # in uninterruptible sleep: a KILL waits
    doomed: bool = False  # that KILL was sent


@dataclass(eq=False)
class Body:
    """What there really is of one launch."""

    launch_id: str
    session_id: str
    kind: RuntimeKind
    named: bool  # its agent runs below a shell, which lives on when it ends
    born_at: float
    server: Process | None = None
    root: Process | None = None
    command: Process | None = None
    agent: Process | None = None
    children: list[Process] = field(default_factory=list)
    ignores_term: bool = False
    ignores_hup: bool = False
    slow_to_end_s: float = 0.05
    attached: int = 0
    has_socket: bool = True
    repairs: bool = False  # it was asked for a new socket while it was stopped
    keeper: int = 0  # the generation of the keeper that spawned it
    words: Words | None = None  # what its agent said last, where that is why it ended
    met: tuple[Words, ...] = ()  # walls that it told of in hooks, each of which may have been lost
    oom: Oom | None = None  # what the keeper found out about want of memory, where a SIGKILL ended its agent
    kept: set[str] = field(default_factory=set)  # who has recorded how the agent ended: keeper, shim, kernel
    known: frozenset[str] = frozenset()  # those of them who had, when its death was told
    told: Oom | None = None  # and what was known of want of memory then
    silent: bool = False
    printed_at: float | None = None  # without a terminal: its file grew last
    hangs: bool = False  # it does nothing any more, and that can be read
    muted: bool = False  # it does what it does, and gives no signs of life
    late_beats: bool = False  # it gives them, and each too late
    when_interrupted: str = "ignores"  # or dies, or exits
    unseen: bool = False  # the kernel's word of its end gets lost

    def processes(self) -> list[Process]:
        """Return all of its processes, the server last."""
        return [p for p in (self.agent, self.command, *self.children, self.root, self.server) if p is not None]

    @property
    def ended_by(self) -> str:
        """Who ended its agent."""
        return "" if self.agent is None else self.agent.ended_by

    @property
    def lives(self) -> bool:
        """Say whether its agent lives."""
        return self.agent is not None and self.agent.alive

    @property
    def pane_is_open(self) -> bool:
        """Say whether what the agent ran in is still there."""
        runtime = self.root or self.command
        return runtime is not None and runtime.alive


def is_process(found: Process) -> bool:
    """Say whether a number is a process's, and not a thread's."""
    return found.role != THREAD


def has_lost_its_pane(body: Body) -> bool:
    """Say whether the pane was closed just before its agent ended, and took it along."""
    root, agent = body.root, body.agent
    if root is None or agent is None or root is agent or root.alive or agent.alive or root.signal is None:
        return False
    return root.ended_at - SETTLE_S <= agent.ended_at <= root.ended_at + ANSWERS_S


class Host:
    """All processes of a machine."""

    def __init__(self, engine: Engine, on_end: Callable[[Body, Process], None]) -> None:
        self._engine = engine
        self._on_end = on_end
        self.boots = 1
        self.bodies: dict[str, Body] = {}
        self._by_pid: dict[int, Process] = {}
        self._next_pid = 0

    @property
    def boot(self) -> str:
        """The identity of this boot."""
        return f"boot-{self.boots}"

    def fork(self, role: str, launch_id: str) -> Process:
        """Start a process; its pid may have belonged to another one before."""
        while True:
            self._next_pid = self._next_pid % PIDS + 1
            before = self._by_pid.get(100 + self._next_pid)
            if before is None or not before.alive:
                break
        pid = 100 + self._next_pid
        process = self._by_pid[pid] = Process(ProcessId(pid, int(self._engine.now * 100), self.boot), role, launch_id)
        return process

    def bear(self, body: Body, with_agent: bool = True) -> None:
        """Bring a launch's processes to life; without its agent it stays half-made."""
        self.bodies[body.launch_id] = body
        if body.kind is RuntimeKind.TMUX:
            body.server = self.fork("server", body.launch_id)
            body.root = self.fork("root", body.launch_id)
        if not with_agent:
            return
        body.command = self.fork("command" if body.named else "agent", body.launch_id)
        body.agent = self.fork("agent", body.launch_id) if body.named else body.command

    def find(self, wanted: ProcessId | None) -> Process | None:
        """Return exactly this process, dead or alive; None if its pid belongs to another one now, or to nobody."""
        found = self._by_pid.get(wanted.pid) if wanted is not None else None
        return found if found is not None and found.id == wanted and is_process(found) else None

    def give_to_thread(self, process: Process) -> bool:
        """The number of a dead process becomes a thread's, begun in the same tick: only that it is none tells them apart."""
        if process.alive or self._by_pid.get(process.id.pid) is not process:
            return False
        self._by_pid[process.id.pid] = Process(process.id, THREAD, "")
        return True

    def end(
        self, body: Body, process: Process, exit_code: int | None = None, by_signal: int | None = None, why: str = ""
    ) -> None:
        """End a process, and what goes with it."""
        if not process.alive:
            return
        process.alive, process.ended_at = False, self._engine.now
        process.exit_code, process.signal, process.ended_by = exit_code, by_signal, why
        self._on_end(body, process)
        if process is body.command and body.root is not None and body.root.alive:  # the shim ends with what it ran
            self._engine.after(CLOSES_S, self.end, body, body.root, exit_code if by_signal is None else 128 + by_signal)
        elif process is body.server or (process is body.root and by_signal is not None):
            self.hang_up(body)

    def hang_up(self, body: Body) -> None:
        """The pane is gone: its root dies of it, and whoever does not ignore it."""
        if body.root is not None and body.root.alive:
            self.end(body, body.root, by_signal=signal.SIGHUP)
            return
        for process in (body.agent, body.command, *body.children):
            immune = process is not None and (process.role == "child" or (process is body.agent and body.ignores_hup))
            if process is not None and process.alive and not immune and process.unkillable_until <= self._engine.now:
                self._engine.after(HANGUP_S, self._hung_up, body, process)

    def _hung_up(self, body: Body, process: Process) -> None:
        self.end(body, process, by_signal=signal.SIGHUP, why="hangup")

    def close_pane(self, body: Body) -> None:
        """Somebody closes the pane: its server has nothing left then."""
        if body.root is not None and body.root.alive:
            self.end(body, body.root, by_signal=signal.SIGHUP)
            if body.server is not None:
                self._engine.after(CLOSES_S, self.end, body, body.server, 0)

    def send(self, body: Body, process: Process, number: int, why: str) -> None:
        """Send a signal; whether and when it ends anything is the process's own matter."""
        if not process.alive:
            return
        if number == signal.SIGKILL:
            if process.unkillable_until > self._engine.now:
                process.doomed = True
                self._engine.at(process.unkillable_until, self.end, body, process, None, number, why)
            else:
                self.end(body, process, by_signal=number, why=why)
        elif not process.stopped and process.unkillable_until <= self._engine.now:
            if process is body.agent and body.ignores_term:
                return
            delay_s = body.slow_to_end_s if process.role in ("agent", "command") else 0.01
            self._engine.after(delay_s, self.end, body, process, None, number, why)

    def interrupt(self, body: Body, process: Process) -> None:
        """Send what Ctrl-C does: an agent may end for it, after a while; a shell around it waits for its agent."""
        ends = process is body.agent and not process.stopped and process.unkillable_until <= self._engine.now
        if ends and body.when_interrupted == "dies":
            self._engine.after(body.slow_to_end_s, self.end, body, process, None, signal.SIGINT, "vigil")
        elif ends and body.when_interrupted == "exits":
            self._engine.after(body.slow_to_end_s, self.end, body, process, 0, None, "vigil")

    def reboot(self) -> None:
        """Everything ends at once, and nobody records it."""
        self.boots += 1
        for body in self.bodies.values():
            for process in body.processes():
                if process.alive:
                    process.alive, process.ended_at, process.ended_by = False, self._engine.now, "reboot"
        self._by_pid.clear()
