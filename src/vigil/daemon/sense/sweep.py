"""The sweep: looks at every launch on a schedule, in case an event was missed; starts no process.

It waits for no server: healthy ones are told at once, a silent one is asked again at the end, and delays no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from vigil.core.events import Event, Observed, Swept
from vigil.core.machine import Machine
from vigil.core.model.reading import AxisValue, Fact
from vigil.core.model.session import ALIVE, Session
from vigil.daemon.base.log import log
from vigil.daemon.sense.axes import Looker
from vigil.daemon.sense.screens import Screens

EVERY_S = 15.0
RARELY_S = 30.0  # every second pass finds a hung server: within a minute, however many there are
LOOKS_A_SECOND = 16  # a larger fleet is passed over less often
THOROUGH = 2  # every second pass pings healthy servers too: at 45 µs each, 500 in every pass would take over 0.5 % of a core
SLICE = 25
FIRST_S = 0.005  # by then twenty-five healthy servers have answered
AGAIN_S = 0.05
LAST_S = 1.5  # a little more than the limit of any server
Look = tuple[Session, bool]  # a session, and whether its server owes an answer


@dataclass(frozen=True)
class Passes:
    """How many passes the sweep made, and the last one's time: to answers, and whole."""

    count: int = 0
    looked_at: int = 0
    well_ms: float = 0.0
    took_ms: float = 0.0


@dataclass(eq=False, repr=False)
class Sweep:
    """Sweeps over all launches: reads all their axes, a slice at a time."""

    _machine: Machine
    _looker: Looker
    _screens: Screens
    _feed: Callable[[Event], None]
    _noticed: asyncio.Queue[str]  # launches whose server changed: looked at now
    passes: Passes = field(default_factory=Passes, init=False)

    async def run(self) -> None:
        """Sweep over all launches for ever, and look meanwhile at what was noticed."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sweep_for_ever())
            while True:
                group.create_task(self._look_again(await self._noticed.get()))

    async def _look_again(self, launch_id: str) -> None:
        try:
            await self.look_at(launch_id)
        except Exception:  # a sensor that fails does not stop the watch
            log.exception("a look failed", launch=launch_id)

    async def _sweep_for_ever(self) -> None:
        while True:
            every_s = pause_s(sum(map(is_looked_at, self._machine.sessions.values())))
            await asyncio.sleep(every_s)
            try:
                await self.sweep()
                await self._screens.keep(filter(is_looked_at, self._machine.sessions.values()))
            except Exception:  # a sensor that fails does not stop the watch: deaths come by events
                log.exception("a sweep failed", next_sweep_s=every_s)

    async def sweep(self) -> None:
        """Make one pass of the sweep: look at every living launch once."""
        begun = time.monotonic()
        alive = [session for session in self._machine.sessions.values() if is_looked_at(session)]
        doubtful: list[Observed] = []
        silent: list[Look] = []
        thorough = self.passes.count % THOROUGH == 0
        for start in range(0, len(alive), SLICE):
            part = [(session, self._looker.begin(session, thorough)) for session in alive[start : start + SLICE]]
            await asyncio.sleep(FIRST_S if any(asked for _, asked in part) else 0)
            silent += self._read(part, doubtful)
        well_s = time.monotonic() - begun
        deadline = asyncio.get_running_loop().time() + LAST_S
        while silent and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(AGAIN_S)
            silent = self._read(silent, doubtful)
        if doubtful:
            self._feed(Swept(tuple(doubtful), len(alive)))
        took_s = time.monotonic() - begun
        self.passes = Passes(self.passes.count + 1, len(alive), round(well_s * 1000, 1), round(took_s * 1000, 1))

    def _read(self, looks: list[Look], doubtful: list[Observed]) -> list[Look]:
        """Feed the sweep's healthy readings, keep doubtful ones to its end, return those still owed."""
        silent = []
        for session, asked in looks:
            seen = self._looker.read(session, asked)
            if seen is None:
                silent.append((session, asked))
            elif all(map(is_well, seen.facts)):
                self._feed(seen)
            else:
                doubtful.append(seen)
        return silent

    async def look_at(self, launch_id: str) -> None:
        session = self._machine.of_launch(launch_id)
        if session is not None:
            await self.look(session)

    async def look(self, session: Session) -> None:
        if not is_looked_at(session):
            return
        asked = self._looker.begin(session)
        deadline = asyncio.get_running_loop().time() + LAST_S
        wait_s = FIRST_S / 10
        while True:
            seen = self._looker.read(session, asked)
            if seen is not None:
                self._feed(seen)
                return
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, AGAIN_S)


def pause_s(sessions: int) -> float:
    """Return the pause before the next sweep over so many sessions."""
    return min(RARELY_S, max(EVERY_S, sessions / LOOKS_A_SECOND))


def is_looked_at(session: Session) -> bool:
    """Say whether the sweep looks at a session: its launch may live."""
    launch = session.launch
    return session.state in ALIVE and launch is not None and launch.process is not None and launch.ended_at is None


def is_well(fact: Fact) -> bool:
    return fact.value in (AxisValue.ALIVE, AxisValue.STOPPED)
