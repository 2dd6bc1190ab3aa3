"""Kills for want of memory: what the kernel's counters and log say of a process that ended by SIGKILL; the core concludes.

A counter that grew by one counts for one death alone, so a kill by hand just after is not taken for the kernel's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from vigil.keeper.protocol import KillFacts
from vigil.kernel import process
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.host import read_oom_kills
from vigil.kernel.kernel_log import KernelLog
from vigil.kernel.proc import PROC

SETTLE_S = 2.0  # the kernel counts first, and a large process ends slowly: a count this young may be its own
LINE_S = 0.02  # the log's line follows the count and the signal
STEP_S = 0.002
CGROUPS = 64


class Counter:
    """One kernel counter, and its value when last accounted for."""

    def __init__(self) -> None:
        self._settled: int | None = None
        self._fresh: tuple[float, int] | None = None

    def note(self, value: int | None, now: float) -> None:
        if value is None:
            return
        if self._fresh is None:
            self._fresh = (now, value)
        elif now - self._fresh[0] >= SETTLE_S:
            self._settled, self._fresh = self._fresh[1], (now, value)

    def growth(self, value: int | None, now: float) -> int | None:
        """Return its growth that no death accounts for; None without a value to compare."""
        before = self._before(now)
        return None if value is None or before is None else max(0, value - before)

    def _before(self, now: float) -> int | None:
        if self._fresh is not None and (self._settled is None or now - self._fresh[0] >= SETTLE_S):
            return self._fresh[1]
        return self._settled

    def grown(self, value: int | None, now: float) -> int | None:
        """Return its growth, and account for one: the rest is for others who end now. None without a value to compare."""
        before = self._before(now)
        if value is not None:
            self._settled = value if before is None else min(value, before + 1)
            self._fresh = (now, value)
        return None if value is None or before is None else max(0, value - before)


class Kills:
    """The counters of the host and of the cgroups in use."""

    def __init__(self, log: KernelLog, cgroups: Cgroups, proc: str = PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._groups = cgroups
        self._proc = proc
        self._clock = clock
        self._host = Counter()
        self._counters: dict[str, Counter] = {}

    def note_host(self, kills: int | None) -> None:
        self._host.note(kills, self._clock())

    def note_cgroup(self, path: str | None, kills: int | None) -> None:
        """Remember a sample of a cgroup's counter, for a bounded number of cgroups."""
        if path is not None and (path in self._counters or len(self._counters) < CGROUPS):
            self._counters.setdefault(path, Counter()).note(kills, self._clock())

    def sample(self, paths: Iterable[str]) -> None:
        """Read the counters of the cgroups in use, and forget the others."""
        used = list(dict.fromkeys(paths))[:CGROUPS]
        self._counters = {path: self._counters[path] for path in used if path in self._counters}
        for path in used:
            self.note_cgroup(path, self._groups.read_kills(path))

    def account(self, pid: int, start_ticks: int, cgroup: str | None, armed: dict[str, Any] | None) -> KillFacts:
        """Return what is known of a process that ended by SIGKILL; `cgroup` is the last it was seen in."""
        if self._groups.version == 2:
            found = self._groups.path_of(pid)  # a zombie still says where it was
            cgroup = found if found and process.read_start_ticks(pid) == start_ticks else cgroup
        now = self._clock()
        host_kills = self._host.grown(read_oom_kills(self._proc), now)
        cgroup_kills = self._grown_in(cgroup, armed, now)
        line = self._await_line(pid, start_ticks / process.TICKS_A_SECOND, bool(host_kills))
        named = True if line is not None else self._log.denies()
        moved = named is None and cgroup_kills == 0 and host_kills  # then it may have been in a cgroup that we do not know
        return KillFacts(named, line, cgroup, cgroup_kills, host_kills, self._grown_beside(cgroup, now) if moved else None)

    def _grown_beside(self, own: str | None, now: float) -> int:
        """Return how many were killed in the cgroups of other launches, as far as none of their deaths accounts for it."""
        others = ((path, counter) for path, counter in self._counters.items() if path != own)
        return sum(counter.growth(self._groups.read_kills(path), now) or 0 for path, counter in others)

    def _grown_in(self, path: str | None, armed: dict[str, Any] | None, now: float) -> int | None:
        if path is None:
            return None
        kills = self._groups.read_kills(path)
        counter = self._counters.get(path)
        if counter is None:
            self.note_cgroup(path, kills)
            before = _armed_kills(armed, path)
            return None if kills is None or before is None else max(0, kills - before)
        return counter.grown(kills, now)

    def _await_line(self, pid: int, since_s: float, is_expected: bool) -> str | None:
        """Return the kernel's line of this kill; wait for one that is expected."""
        until = time.monotonic() + (LINE_S if is_expected and self._log.readable else 0)
        while True:
            self._log.drain()
            line = self._log.line_of_kill(pid, since_s=since_s)
            if line is not None or time.monotonic() >= until:
                return line
            time.sleep(STEP_S)


def _armed_kills(armed: dict[str, Any] | None, path: str) -> int | None:
    cgroup = (armed or {}).get("cgroup")
    kills = cgroup.get("oom_kills") if isinstance(cgroup, dict) and cgroup.get("path") == path else None
    return kills if isinstance(kills, int) else None
