"""The daemon: its parts, put together, from start to stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

from vigil import __version__
from vigil.core.events import Resumed
from vigil.core.machine import Machine
from vigil.core.model import ALIVE, Session, State
from vigil.daemon.adopt import Adopter
from vigil.daemon.carry import Carrier
from vigil.daemon.clock import Clock
from vigil.daemon.deathwatch import DeathWatch, roles_of
from vigil.daemon.feed import Feed
from vigil.daemon.keeper_link import KeeperLink, KeeperSilent
from vigil.daemon.lateness import Lateness
from vigil.daemon.log import log
from vigil.daemon.operations import Operations
from vigil.daemon.outputs import Outputs
from vigil.daemon.supervisor import Supervisor
from vigil.daemon.sweep import Sweep
from vigil.home import Home
from vigil.observe.clients import read_clients
from vigil.runtimes import make_runtimes
from vigil.store.store import Store

READ_S = 1.5
OVER = frozenset({State.STOPPED, State.SUCCEEDED})
OLD_S = 86400.0


class Daemon:
    """One daemon of one home."""

    def __init__(self, home: Home, store: Store, nofile: int) -> None:
        self.home = home
        self.store = store
        self.pid = os.getpid()
        self.clock = Clock()
        self.started_at = self.clock.now()
        self.machine = Machine(store.read_sessions())
        self.feed = Feed(store)
        self.supervisor = Supervisor(self.machine, store, self.feed, self.clock)
        self.runtimes = make_runtimes(home)
        self.watch = DeathWatch(home, self.clock, self.supervisor.feed)
        self.outputs = Outputs(home, self.clock, self.supervisor.feed)
        self.keeper = KeeperLink(home, self.watch.heard, self.supervisor.note, self._rewatch, nofile)
        self.supervisor.carrier = Carrier(
            home, self.clock, self.runtimes, self.keeper, self.watch, self.outputs, self.supervisor.feed
        )
        self.operations = Operations(home, self.supervisor, self.runtimes)
        self.sweep = Sweep(home, self.clock, self.machine, self.runtimes, self.watch, self.supervisor.feed)
        self.lateness = Lateness()
        self._stopping = asyncio.Event()
        self._with_keeper = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Take over what lives, then run the loops."""
        self.feed.load()
        await self.keeper.connect()
        adopter = Adopter(self.home, self.clock, self.supervisor.carrier)
        stored = list(self.machine.sessions.values())
        self.supervisor.feed(Resumed())
        for event in await asyncio.gather(*map(adopter.adopt, stored)):
            if event is not None:
                self.supervisor.feed(event)
        await self._rewatch()
        self.supervisor.note("daemon.started", {"pid": self.pid, "version": __version__, "sessions": len(stored)})
        for work in (self.supervisor.run(), self.keeper.run(), self.sweep.run(), self.lateness.run()):
            self._tasks.append(asyncio.create_task(self._guard(work)))

    def stop(self, with_keeper: bool = False) -> None:
        """Ask for the end; sessions live on, and the keeper with them unless there are none left."""
        self._with_keeper = with_keeper
        self._stopping.set()

    async def stopped(self) -> None:
        """Wait for the end and leave everything in order."""
        await self._stopping.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.supervisor.close()
        await self.watch.close()
        self.outputs.close()
        if self._with_keeper:
            self.keeper.tell("quit")
        await self.keeper.close()
        self.store.close()

    def is_old(self, session: Session) -> bool:
        """Say whether a session has been over for so long that a list without `--all` leaves it out."""
        return session.state in OVER and self.clock.now() - session.state_since > OLD_S

    async def look(self, session: Session) -> None:
        """Read one session's axes now; a server that does not answer costs its deadline and nothing else."""
        launch = session.launch
        if session.state in ALIVE and launch is not None:
            await self.sweep.look(session, read_clients())
            await self.supervisor.until(lambda: self.supervisor.shown.get(session.id) is not session, READ_S)

    async def _rewatch(self) -> None:
        """Tell a keeper what lives here: one that is new watches what it did not spawn."""
        watches = [
            {
                "launch": launch.id,
                "folder": str(self.home.launch(launch.id)),
                "role": role,
                "pid": process.pid,
                "start_ticks": process.start_ticks,
            }
            for launch in self.watch.watching()
            for role, process in roles_of(launch).items()
        ]
        if watches:
            try:
                await self.keeper.ask("watch", timeout_s=10.0, watches=watches)
            except KeeperSilent as error:
                log.error("keeper not told", why=str(error))

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """A loop that fails ends the daemon, loudly: the next command starts it anew and nothing is lost (P10)."""
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException:
            log.exception("a loop failed")
            os._exit(70)
