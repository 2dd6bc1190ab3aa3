"""The axes of one launch: reads them now, and asks the kernel where a reading is unsure. It concludes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from vigil.core.events import Observed
from vigil.core.model.launch import Launch, ProcessId, RuntimeKind
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.session import Session
from vigil.daemon.base.ground import Ground
from vigil.daemon.sense.death import DeathWatch
from vigil.daemon.sense.process_ends import agent_role
from vigil.kernel.clients import read_clients
from vigil.observe.process import ask_kernel, read_group, read_process
from vigil.runtimes import Runtime, socket_of

SURE = (AxisValue.ALIVE, AxisValue.STOPPED, AxisValue.DEAD)
CLIENTS_S = 0.5


@dataclass(eq=False, repr=False)
class Looker:
    _ground: Ground
    _runtimes: dict[RuntimeKind, Runtime]
    _watch: DeathWatch
    _clients: dict[str, int] | None = field(default_factory=dict, init=False)
    _clients_at: float = field(default=0.0, init=False)

    def begin(self, session: Session, thorough: bool = True) -> bool:
        """Begin to read a session's axes; say whether its server owes an answer.

        Only a thorough look pings healthy servers, the dear part."""
        launch = session.launch
        if launch is None or launch.server is None or self._watch.has_ended(launch.id, "server"):
            return False
        seems_well = not thorough and session.vitals.doubt is None
        if seems_well and read_process(Axis.SERVER, launch.server, self._ground.boot, 0.0).value == AxisValue.ALIVE:
            return False
        self._runtimes[session.spec.runtime].ask_server(launch)
        return True

    def read(self, session: Session, asked: bool) -> Observed | None:
        """Read the axes of a session's launch; None while an asked server may still answer."""
        launch = session.launch
        assert launch is not None and launch.process is not None
        now = self._ground.now()
        facts: list[Fact] = []
        socket_lost = False
        if launch.server is not None:
            if self._watch.has_ended(launch.id, "server"):
                facts.append(self._read_role(Axis.SERVER, launch, "server", launch.server, now))
            elif asked:
                answer = self._runtimes[session.spec.runtime].read_server(launch, now)
                if answer is None:
                    return None
                facts += [answer.fact] if answer.fact else []
                socket_lost = answer.socket_lost
        process = self._read_agent(launch, now)
        facts += [process, self._read_runtime(launch, process, now)]
        attached = self._read_attached(launch, now) if launch.server else 0
        return Observed(launch.id, tuple(facts), attached, socket_lost=socket_lost)

    def _read_attached(self, launch: Launch, now: float) -> int | None:
        """Read a launch's attached clients beside its axes, once for all launches; None is unknown."""
        if not 0 <= now - self._clients_at < CLIENTS_S:
            self._clients_at, self._clients = now, read_clients()
        return None if self._clients is None else self._clients.get(socket_of(self._ground.home, launch), 0)

    def _read_agent(self, launch: Launch, now: float) -> Fact:
        if launch.names and launch.found is None:
            names = " or ".join(launch.names)
            return Fact(Axis.PROCESS, AxisValue.UNKNOWN, "procfs", now, why=f"no {names} runs in it yet")
        agent = launch.agent
        assert agent is not None
        fact = read_process(Axis.PROCESS, agent, self._ground.boot, now)
        if fact.conclusive and fact.value in SURE:
            return fact
        return self._read_role(Axis.PROCESS, launch, agent_role(launch), agent, now)

    def _read_runtime(self, launch: Launch, process: Fact, now: float) -> Fact:
        if launch.root is not None:
            return self._read_role(Axis.RUNTIME, launch, "root", launch.root, now)
        assert launch.process is not None
        if launch.found is not None or launch.names:
            process = read_process(Axis.PROCESS, launch.process, self._ground.boot, now)
        return read_group(launch.process, process, now)

    def _read_role(self, axis: Axis, launch: Launch, role: str, process: ProcessId, now: float) -> Fact:
        """Read an axis by its process's held pidfd; without one ask the kernel anew."""
        ended = self._watch.has_ended(launch.id, role)
        if ended is None:
            return ask_kernel(axis, process, self._ground.boot, now)
        return Fact(axis, AxisValue.DEAD if ended else AxisValue.ALIVE, "pidfd", now, conclusive=True)
