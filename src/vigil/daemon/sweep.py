"""The sweep: a slow look at every launch, in case an event was missed; no process is started for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vigil.core.events import Event, Observed
from vigil.core.machine import Machine
from vigil.core.model import ALIVE, Axis, Fact, RuntimeKind, Session
from vigil.daemon.clock import Clock
from vigil.daemon.deathwatch import DeathWatch
from vigil.daemon.log import log
from vigil.home import Home
from vigil.keeper import kernel
from vigil.observe.clients import read_clients
from vigil.observe.process import read_group, read_process
from vigil.runtimes import Runtime

EVERY_S = 30.0
SLICE = 25


class Sweep:
    """Reads all axes of all launches, a slice at a time."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        machine: Machine,
        runtimes: dict[RuntimeKind, Runtime],
        watch: DeathWatch,
        feed: Callable[[Event], None],
    ) -> None:
        self._home = home
        self._clock = clock
        self._machine = machine
        self._runtimes = runtimes
        self._watch = watch
        self._feed = feed
        self._boot = kernel.read_boot()

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.sweep()
            except OSError as error:
                log.warning("a sweep failed", why=str(error), next_sweep_s=EVERY_S)

    async def sweep(self) -> None:
        """Look at every living launch once."""
        clients = read_clients()
        alive = [session for session in self._machine.sessions.values() if session.state in ALIVE]
        for start in range(0, len(alive), SLICE):
            await asyncio.gather(*(self.look(session, clients) for session in alive[start : start + SLICE]))
            await asyncio.sleep(0)

    async def look(self, session: Session, clients: dict[str, int]) -> None:
        """Read the axes of one session and say what they show."""
        launch = session.launch
        if launch is None or launch.process is None or launch.ended_at is not None:
            return
        now = self._clock.now()
        process = read_process(Axis.PROCESS, launch.process, self._boot, now)
        facts: list[Fact] = [process]
        attached = 0
        if session.spec.runtime is RuntimeKind.TMUX:
            if launch.root is not None:
                facts.append(read_process(Axis.RUNTIME, launch.root, self._boot, now))
            server = await self._runtimes[session.spec.runtime].read_server(launch, now)
            facts += [server] if server is not None else []
            attached = clients.get(str(self._home.server_socket(launch.id)), 0)
        else:
            facts.append(read_group(launch.process, process, now))
        if process.value == "dead" and process.conclusive:
            self._watch.recheck(launch)
        self._feed(Observed(launch.id, tuple(facts), attached))
