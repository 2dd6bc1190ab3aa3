"""Memory: how much of it a launch could still use.

What was read is a bound from above: the host has no more, and each memory cgroup around us lets no more through. A bound that
cannot be read, or stands in a cgroup that a container hides from us, is left out.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from vigil.keeper.cgroups import UNLIMITED_BYTES, V1, V2, Cgroups
from vigil.keeper.host import MEMORY, number, read_bytes

FILES = {1: V1, 2: V2}
RECLAIMABLE = {1: b"total_inactive_file", 2: b"inactive_file"}  # what the kernel drops first, before it ends anybody


def read_available(proc: Path = Path("/proc"), cgroups: Cgroups | None = None, pid: int | None = None) -> int | None:
    """Read how many bytes a child of a process, of this one if none is named, could still use; None if nothing says."""
    seen = cgroups or _seen_from(str(proc))
    available_kb = _read_named(f"{proc}/meminfo", MEMORY["mem_available_kb"])
    least = None if available_kb is None else available_kb * 1024
    own = seen.path_of(os.getpid() if pid is None else pid)
    if own is None or seen.version is None:
        return least
    for path in (Path(own), *Path(own).parents):  # above the mount there are no such files, and so no bounds
        least = _lowered(least, str(path), seen.version)
    return least


@cache
def _seen_from(proc: str) -> Cgroups:
    return Cgroups(proc)  # once: where cgroups are mounted costs more to read than all the rest


def _lowered(least: int | None, path: str, version: int) -> int | None:
    """Return the bytes known so far, or those that the limit of a cgroup leaves, if they are fewer."""
    files = FILES[version]
    limit = number(read_bytes(f"{path}/{files['max_bytes']}"))  # "max" is no number
    if limit is None or limit >= UNLIMITED_BYTES:
        return least
    used = number(read_bytes(f"{path}/{files['current_bytes']}"))
    if used is None or (least is not None and limit - used >= least):  # not asked for in vain: memory.stat can be slow
        return least
    reclaimable = _read_named(f"{path}/memory.stat", RECLAIMABLE[version]) or 0
    left = max(0, limit - max(0, used - reclaimable))
    return left if least is None else min(left, least)


def _read_named(path: str, name: bytes) -> int | None:
    """Read the number that follows a name in a list of the kernel's."""
    for line in read_bytes(path).splitlines():
        if line.startswith(name + b" "):
            return number(b"".join(line.split()[1:2]))  # its unit may follow
    return None
