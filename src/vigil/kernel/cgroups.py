"""Cgroups: the memory cgroup of a process and its counters, and in version 2 a cgroup for each launch; None is unreadable.

Version 1 counts kills in the victim's own cgroup, version 2 in all above it too."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping
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
CONTROLLERS = ("memory", "pids", "cpu")
PREFIX = "vigil-"  # of an instance's folder; in it one for each launch
LEAF = "vigil-keeper"  # version 2 hands no controller on from a cgroup with processes of its own
LAUNCH = re.compile(rf"(.*?)/{PREFIX}[0-9a-f]{{12}}/[^/]+(/.*)?")


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
    found = _mounts_in(mountinfo)
    return found[1] or found[2]


def _mounts_in(mountinfo: str) -> dict[int, list[Mount]]:
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
    return found


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


# A cgroup for each launch


class CgroupRefused(OSError):
    """The keeper may not enter a launch's cgroup."""


class CgroupPlace(NamedTuple):
    """Where an instance's launches get cgroups, and the controllers these have; without a folder, why not."""

    folder: str = ""
    controllers: frozenset[str] = frozenset()
    why: str = ""


def prepare(instance: str, keeper: int, root: str = "") -> CgroupPlace:
    """Make an instance's folder below `root`, or else below the keeper's own cgroup, with all controllers there are."""
    base = root.rstrip("/") or _base_of(keeper)
    if not base:
        return CgroupPlace(why="no cgroup2 is mounted that shows the keeper's own cgroup")
    folder = f"{base}/{PREFIX}{instance}"
    try:
        if not _is_cgroup(base):
            return CgroupPlace(why=f"{base} is no folder of a cgroup2")
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        if not os.path.exists(f"{folder}/cgroup.kill"):
            os.rmdir(folder)
            return CgroupPlace(why=f"{base} has no cgroup.kill, which Linux has since 5.14")
        above = os.path.commonpath([base, _folder_of(keeper) or base])  # the kernel asks there who may move a process
        if not all(os.access(f"{path}/cgroup.procs", os.W_OK) for path in (base, above) if _is_cgroup(path)):
            return CgroupPlace(why=f"the keeper may not move a child to {base}: {above} was not delegated to you")
    except OSError as error:
        return CgroupPlace(why=f"{error.strerror}: {error.filename}")
    _hand_on(base, keeper)
    return CgroupPlace(folder, frozenset(CONTROLLERS) & _hand_on(folder, keeper))


def make(folder: str, limits: Mapping[str, str]) -> None:
    """Make the cgroup of a launch, with limits by the names of their files; OSError leaves none."""
    os.mkdir(folder)
    try:
        for name, value in limits.items():
            _write(f"{folder}/{name}", value)
    except OSError:
        os.rmdir(folder)
        raise


@contextlib.contextmanager
def inside(folder: str) -> Iterator[None]:
    """Be in a cgroup for a moment, for a child to be born there; nothing happens without a folder."""
    if not folder:
        yield
        return
    home = _folder_of(os.getpid())
    if home is None:
        raise CgroupRefused(errno.ENOENT, "the keeper cannot see its own cgroup", folder)
    try:
        _write(f"{folder}/cgroup.procs", "0")
    except OSError as error:
        raise CgroupRefused(error.errno, error.strerror, error.filename) from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # then `kill` spares this cgroup, as it holds the keeper
            _write(f"{home}/cgroup.procs", "0")


def leave() -> None:
    """Leave the cgroup of the launch whose agent started us: what ends that launch must not end us."""
    found = LAUNCH.fullmatch(_folder_of(os.getpid()) or "")
    if found is None:
        return
    with contextlib.suppress(OSError):
        _write(f"{found[1]}/cgroup.procs", "0")
        return
    with contextlib.suppress(OSError):
        os.makedirs(f"{found[1]}/{LEAF}", exist_ok=True)
        _write(f"{found[1]}/{LEAF}/cgroup.procs", "0")


def read_launch(pid: int, instance: str) -> str | None:
    """Read the launch in whose cgroup a process is; None if in none of this instance."""
    _, found, rest = read_bytes(f"{PROC}/{pid}/cgroup").partition(f"/{PREFIX}{instance}/".encode())
    return rest.split(b"\n", 1)[0].split(b"/", 1)[0].decode("utf-8", "replace") if found else None


def read_members(folder: str) -> set[int]:
    """Read the processes of a cgroup and of all below it."""
    return {int(pid) for path, _, _ in os.walk(folder) for pid in read_bytes(f"{path}/cgroup.procs", 1 << 20).split()}


def is_populated(folder: str) -> bool:
    """Say whether a process lives in a cgroup or below it."""
    return b"populated 1" in read_bytes(f"{folder}/cgroup.events")


def kill(folder: str, spare: int | None) -> None:
    """Kill all that is in a cgroup, unless the keeper is there; OSError if it cannot."""
    if spare not in read_members(folder):
        _write(f"{folder}/cgroup.kill", "1")


def remove(folder: str) -> None:
    """Remove a cgroup and those below it, except those with processes."""
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _base_of(keeper: int) -> str:
    """Return the cgroup that holds the keeper, or its leaf, or the launch in which it is for a moment."""
    folder = _folder_of(keeper) or ""
    found = LAUNCH.fullmatch(folder)
    return found[1] if found else folder.removesuffix(f"/{LEAF}")


def _folder_of(pid: int) -> str | None:
    """Return the folder of a process's cgroup in version 2."""
    inside_ = path_within(read_bytes(f"{PROC}/{pid}/cgroup").decode("utf-8", "surrogateescape"), 2)
    mounts = _mounts_in(read_bytes(f"{PROC}/self/mountinfo", 1 << 20).decode("utf-8", "surrogateescape"))[2]
    if inside_ is None:
        return None
    return next((path for mount in reversed(mounts) if (path := place(mount, inside_)) is not None), None)


def _is_cgroup(folder: str) -> bool:
    return os.path.isfile(f"{folder}/cgroup.procs")


def _hand_on(folder: str, keeper: int) -> frozenset[str]:
    """Let those below a cgroup have its controllers; return those they have."""
    for controller in CONTROLLERS:
        if controller in _words(folder, "cgroup.controllers") - _words(folder, "cgroup.subtree_control"):
            with contextlib.suppress(OSError):
                try:
                    _write(f"{folder}/cgroup.subtree_control", f"+{controller}")
                except OSError as error:
                    if error.errno != errno.EBUSY or _words(folder, "cgroup.procs") != {str(keeper)}:
                        raise  # we move nothing but the keeper
                    os.makedirs(f"{folder}/{LEAF}", exist_ok=True)
                    _write(f"{folder}/{LEAF}/cgroup.procs", str(keeper))
                    _write(f"{folder}/cgroup.subtree_control", f"+{controller}")
    return _words(folder, "cgroup.subtree_control")


def _words(folder: str, name: str) -> frozenset[str]:
    return frozenset(read_bytes(f"{folder}/{name}").decode().split())


def _write(path: str, text: str) -> None:
    """Write to one of the kernel's files; it takes or refuses the text at once."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(fd)
