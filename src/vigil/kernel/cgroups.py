"""Memory cgroups: which one a process is in, by its folder as we see it, and its counters. Unprivileged; None is unreadable.

Version 1 counts kills in the victim's own cgroup, version 2 in all above it too."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from vigil.kernel.host import number, read_bytes
from vigil.kernel.proc import PROC

UNLIMITED_BYTES = 1 << 62  # version 1's "no limit": the largest number that it can round to pages
V1 = {
    "current_bytes": "memory.usage_in_bytes",
    "max_bytes": "memory.limit_in_bytes",
    "peak_bytes": "memory.max_usage_in_bytes",
    "limit_hits": "memory.failcnt",
}
V2 = {
    "current_bytes": "memory.current",
    "max_bytes": "memory.max",
    "peak_bytes": "memory.peak",
    "swap_current_bytes": "memory.swap.current",
    "swap_max_bytes": "memory.swap.max",
    "swap_peak_bytes": "memory.swap.peak",
}
EVENTS = {1: "memory.oom_control", 2: "memory.events"}


class Mount(NamedTuple):
    """A place where memory cgroups can be seen: `root` is the cgroup that stands at `point`."""

    version: int
    root: str
    point: str


class Cgroups:
    """The memory cgroups of this host, as far as they can be seen from here."""

    def __init__(self, proc: str = PROC) -> None:
        self._proc = proc
        self._mounts = read_mounts(read_bytes(f"{proc}/self/mountinfo", 1 << 20).decode("utf-8", "surrogateescape"))
        self.version = self._mounts[0].version if self._mounts else None

    def path_of(self, pid: int) -> str | None:
        """Return the folder of a process's memory cgroup, None if unseen; version 1 shows a zombie in the first of all."""
        inside = path_within(read_bytes(f"{self._proc}/{pid}/cgroup").decode("utf-8", "surrogateescape"), self.version)
        if inside is None:
            return None
        for mount in reversed(self._mounts):  # a later mount may cover an earlier one
            path = place(mount, inside)
            if path is not None:
                return _nearest_with_events(path, mount)
        return None

    def read_kills(self, path: str) -> int | None:
        """Read how many processes of a cgroup were killed for want of memory."""
        if self.version is None:
            return None
        for line in read_bytes(os.path.join(path, EVENTS[self.version])).splitlines():
            if line.startswith(b"oom_kill "):
                return number(line[9:])
        return None

    def read_counters(self, path: str | None) -> dict[str, Any] | None:
        """Read all counters of a cgroup; None if it is gone."""
        if path is None or self.version is None or not os.path.isdir(path):
            return None
        counters: dict[str, Any] = {"path": path, "version": self.version, "oom_kills": self.read_kills(path)}
        for ours, theirs in (V1 if self.version == 1 else V2).items():
            value = number(read_bytes(os.path.join(path, theirs)))
            counters[ours] = None if value is None or value >= UNLIMITED_BYTES else value
        return counters


def read_mounts(mountinfo: str) -> list[Mount]:
    """Return where memory cgroups are mounted: version 1 if it has the memory controller, else version 2."""
    found: dict[int, list[Mount]] = {1: [], 2: []}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, ends = left.split(" "), right.split(" ")
        if len(fields) < 5 or len(ends) < 3:
            continue
        root, point = _unescape(fields[3]), _unescape(fields[4])
        if ends[0] == "cgroup" and "memory" in ends[2].split(","):
            found[1].append(Mount(1, root, point))
        elif ends[0] == "cgroup2":
            found[2].append(Mount(2, root, point))
    return found[1] or found[2]


def path_within(text: str, version: int | None) -> str | None:
    """Return a process's memory cgroup as /proc/PID/cgroup names it; None if the text does not say."""
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if path and ("memory" in controllers.split(",") if version == 1 else version == 2 and not controllers):
            return path.removesuffix(" (deleted)")
    return None


def place(mount: Mount, inside: str) -> str | None:
    """Return the folder of a cgroup below a mount; None if the mount does not show it."""
    root = mount.root.rstrip("/")
    if "/.." in inside or not (inside == root or inside.startswith(f"{root}/")):
        return None
    return (mount.point.rstrip("/") + inside[len(root) :]).rstrip("/") or "/"


def _nearest_with_events(path: str, mount: Mount) -> str | None:
    """Return the cgroup itself, or the next one above that has counters."""
    while not os.path.exists(os.path.join(path, EVENTS[mount.version])):
        if len(path) <= len(mount.point):
            return None
        path = os.path.dirname(path)
    return path


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
