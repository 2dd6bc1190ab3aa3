"""Processes of launches: a cheap pass over all that live now and then, and a close look at one launch's on request.

Only threads touch /proc: some files wait for a lock that a stuck process never gives; a deadline gives such a look up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from vigil.core.events import Event, Weighed
from vigil.core.machine import Machine
from vigil.core.model.launch import Launch
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.log import log
from vigil.daemon.sense.sweep import is_looked_at
from vigil.hands import Hands, Hangs
from vigil.kernel.proc import PROC
from vigil.kernel.stats import read_scan
from vigil.observe.diagnosis import Diagnosis, Sample, diagnose, take_sample
from vigil.observe.trees import UNMEASURED, Cpu, ProcessTree, Tokens, cpu_between, trees_of
from vigil.threads import ask

T = TypeVar("T")
PASS_S = 30.0  # while an agent works
QUIET_PASS_S = 120.0  # in a fleet where nothing happened for so long
BETWEEN_S = 0.5  # between two looks, without an earlier one to compare: a shorter rate covers a few ticks
LEAST_S, MOST_S = 0.2, 120.0  # the age of a look that another is compared with
DEADLINE_S = 5.0
HUNG = 4  # looks at a time; all of them may hang
GREW = 1.05  # a smaller growth of a memory peak is not told


@dataclass(frozen=True, slots=True)
class Cheap:
    """What a pass read of one launch's processes, and their use since the last pass."""

    tree: ProcessTree
    cpu: Cpu = UNMEASURED


class ProcHangs(Exception):
    """A look at processes in /proc did not come back; the message says so."""


@dataclass(eq=False, repr=False)
class Diagnoser:
    _machine: Machine
    _clock: Clock
    _feed: Callable[[Event], None]
    _keeper_pid: Callable[[], int | None]
    _proc: str = PROC
    _deadline_s: float = DEADLINE_S
    _hands: Hands = field(default_factory=lambda: Hands("diagnosis", HUNG, ready=True), init=False)
    _samples: dict[str, Sample] = field(default_factory=dict, init=False)  # by launch: the last close look
    _peaks: dict[str, int] = field(default_factory=dict, init=False)
    latest: Mapping[str, Cheap] = field(default_factory=dict, init=False)  # by launch: what the last pass read

    def __post_init__(self) -> None:
        self._tokens = Tokens(self._proc)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(PASS_S)
            if not self._is_quiet():
                await self._pass()

    async def _pass(self) -> None:
        try:
            await self.sweep()
        except ProcHangs as error:
            log.warning("processes not read", why=str(error), next_pass_s=PASS_S)
        except Exception:  # a sensor that fails does not stop the watch
            log.exception("a pass over processes failed", next_pass_s=PASS_S)

    def _is_quiet(self) -> bool:
        """Say whether too little happened since the last pass over processes for another one."""
        now = self._clock.now()
        read_at = max((self._clock.at(cheap.tree.at_s) for cheap in self.latest.values()), default=0.0)
        living = [session for session in self._machine.sessions.values() if is_looked_at(session)]
        busy = any(session.vitals.doing.turn or now - (session.last_activity_at or 0.0) < QUIET_PASS_S for session in living)
        return not living or (not busy and now - read_at < QUIET_PASS_S)

    async def sweep(self) -> Mapping[str, Cheap]:
        """Read the processes of all living launches, cheaply; raises ProcHangs."""
        self._note_reaper()
        launches = [session.launch for session in self._machine.sessions.values() if is_looked_at(session) and session.launch]
        before = self.latest
        trees = await self._in_thread(lambda: self._read_trees(launches))
        cpus = {key: cpu_between(before[key].tree, tree) for key, tree in trees.items() if key in before}
        self.latest = {key: Cheap(tree, cpus.get(key, UNMEASURED)) for key, tree in trees.items()}
        self._samples = {key: sample for key, sample in self._samples.items() if key in trees}
        self._peaks = {key: peak for key, peak in self._peaks.items() if key in trees}
        for key, tree in trees.items():
            self._measure(key, tree)
        return self.latest

    async def look(self, launch: Launch, window_s: float | None = None) -> Diagnosis:
        """Look closely at one launch's processes, whatever /proc does, over a window.

        Without a window, compare with the last look, or with one just before."""
        self._note_reaper()
        before = self._samples.get(launch.id) if window_s is None else None
        age_s = None if before is None else self._clock.now() - self._clock.at(before.tree.at_s)
        try:
            if age_s is None or not LEAST_S <= age_s <= MOST_S:
                before = await self._in_thread(lambda: take_sample(launch, self._tokens, thorough=False, proc=self._proc))
                await asyncio.sleep(BETWEEN_S if window_s is None else window_s)
            after = await self._in_thread(lambda: take_sample(launch, self._tokens, proc=self._proc))
        except ProcHangs as error:
            return Diagnosis(launch.id, self._boot_s(), (), (), UNMEASURED, (f"processes: {error}",))
        if self._machine.of_launch(launch.id) is not None:
            self._samples[launch.id] = after
            self._measure(launch.id, after.tree)
        return diagnose(launch, before, after)

    def _note_reaper(self) -> None:
        """Remember which process inherits orphaned processes."""
        if (pid := self._keeper_pid()) is not None and pid not in self._tokens.reapers:
            self._tokens.reapers = frozenset({1, pid})

    def _boot_s(self) -> float:
        return self._clock.now() - self._clock.at(0.0)

    def _read_trees(self, launches: Iterable[Launch]) -> dict[str, ProcessTree]:
        scan = read_scan(self._proc)
        self._tokens.forget_ended(scan)
        return trees_of(launches, scan, self._tokens)

    def _measure(self, launch_id: str, tree: ProcessTree) -> None:
        """Feed the memory of a launch's processes when it has grown."""
        if tree.members and tree.rss_bytes > self._peaks.get(launch_id, 0) * GREW:
            self._peaks[launch_id] = tree.rss_bytes
            self._feed(Weighed(launch_id, tree.rss_bytes))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Read processes in a thread; raises ProcHangs after its deadline."""
        try:
            return await ask(self._hands, work, self._deadline_s)
        except Hangs as error:
            late = f"{error.earlier} earlier looks have not come back" if error.earlier else f"/proc gave {error}"
            raise ProcHangs(f"{late}: a process is stuck in the kernel") from None
