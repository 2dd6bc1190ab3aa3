"""Memory: how much of it a launch could still use, at most.

The bounds are the host and each memory cgroup around us; an unreadable or hidden one is left out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from vigil.kernel.cgroups import UNLIMITED_BYTES, V1, V2, Cgroups
from vigil.kernel.host import number, read_available_kb, read_bytes, read_named
from vigil.kernel.proc import PROC

FILES = {1: V1, 2: V2}
RECLAIMABLE = {1: b"total_inactive_file", 2: b"inactive_file"}  # the kernel drops these first, before it kills
LIMITS_S = 10.0  # how late we see a limit that is set while we run


class Memory:
    """How many bytes are left, to be read often: it does not look for limited cgroups each time."""

    def __init__(self, proc: str = PROC) -> None:
        self._proc = proc
        self._cgroups = Cgroups(proc)  # once: reading the mounts costs more than all the rest
        self._pid: int | None = None
        self._limited: list[Limited] = []
        self._found_at = -LIMITS_S

    def read(self, pid: int) -> int | None:
        """Read how many bytes a child of a process could still use; None if nothing says."""
        now = time.monotonic()
        if pid != self._pid or now - self._found_at >= LIMITS_S:
            self._pid, self._limited, self._found_at = pid, _find_limited(self._cgroups, pid), now
        available_kb = read_available_kb(self._proc)
        least = None if available_kb is None else available_kb * 1024
        for cgroup in self._limited:
            least = cgroup.lower(least)
        return least


def _find_limited(seen: Cgroups, pid: int) -> list[Limited]:
    """Return the cgroups around a process that have a limit now."""
    own = seen.path_of(pid)
    if own is None or seen.version is None:
        return []
    around = [Limited(str(path), seen.version) for path in (Path(own), *Path(own).parents)]
    return [cgroup for cgroup in around if cgroup.read_limit() is not None]  # above the mount there are no files, and no limits


@dataclass(frozen=True)
class Limited:
    path: str
    version: int

    def read_limit(self) -> int | None:
        """Read its limit in bytes; None without one ("max" is no number)."""
        limit = number(read_bytes(f"{self.path}/{FILES[self.version]['max_bytes']}"))
        return None if limit is None or limit >= UNLIMITED_BYTES else limit

    def lower(self, least: int | None) -> int | None:
        """Return the smaller of the bytes known so far and those that it leaves."""
        limit, used = self.read_limit(), number(read_bytes(f"{self.path}/{FILES[self.version]['current_bytes']}"))
        if limit is None or used is None:
            return least
        if least is not None and limit - used >= least:  # memory.stat can be slow: ask only if it matters
            return least
        reclaimable = read_named(f"{self.path}/memory.stat", RECLAIMABLE[self.version]) or 0
        left = max(0, limit - max(0, used - reclaimable))
        return left if least is None else min(left, least)
