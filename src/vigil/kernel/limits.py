"""Limits: how much a process and its host have left of descriptors, tasks and inodes; None is unlimited or unknown."""

from __future__ import annotations

import os
import resource
from typing import NamedTuple

from vigil.kernel.host import number, read_bytes
from vigil.kernel.proc import PROC, folder_of
from vigil.kernel.process import read_stat
from vigil.kernel.processes import read_owner, read_pids

PIDS_MOUNTS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup", "/sys/fs/cgroup/unified")


class Supply(NamedTuple):
    """What is in use of something, and the most there can be."""

    used: int
    most: int

    @property
    def left(self) -> int:
        return max(0, self.most - self.used)


def read_open_files(pid: int) -> Supply | None:
    """Read a process's open descriptors; None if it is gone, another user's, or unlimited."""
    try:
        used = len(os.listdir(f"{folder_of(pid)}/fd"))
        most = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except OSError:
        return None
    return None if most == resource.RLIM_INFINITY else Supply(used, most)


def read_host_tasks() -> Supply | None:
    """Read the host's processes and threads, against the numbers the kernel has for them."""
    fields = read_bytes(f"{PROC}/loadavg").split()
    used = number(fields[3].rpartition(b"/")[2]) if len(fields) > 3 else None
    bounds = [number(read_bytes(f"{PROC}/sys/kernel/{name}")) for name in ("pid_max", "threads-max")]
    known = [bound for bound in bounds if bound is not None]
    return None if used is None or not known else Supply(used, min(known))


def read_user_tasks(pid: int) -> Supply | None:
    """Read the tasks of a process's user against its RLIMIT_NPROC; None if that binds nobody."""
    try:
        uid = read_owner(pid)
        most = resource.prlimit(pid, resource.RLIMIT_NPROC)[0]
    except OSError:
        return None
    if uid == 0 or most == resource.RLIM_INFINITY:
        return None
    return Supply(sum(map(_tasks_of, (one for one in read_pids() if _is_of(one, uid)))), most)


def _is_of(pid: int, uid: int) -> bool:
    try:
        return read_owner(pid) == uid
    except OSError:
        return False


def _tasks_of(pid: int) -> int:
    try:
        stat = read_stat(pid)
    except OSError:
        return 0
    return 0 if stat is None else stat.threads


def read_cgroup_tasks(pid: int) -> Supply | None:
    """Read the tasks of a process's cgroup against the nearest limit above it; None if there is none."""
    for line in read_bytes(f"{folder_of(pid)}/cgroup").splitlines():
        _, _, rest = line.partition(b":")
        controllers, _, path = rest.partition(b":")  # none: version 2
        if controllers in (b"pids", b""):
            for mount in PIDS_MOUNTS:
                if (supply := _read_pids_of(mount, os.fsdecode(path))) is not None:
                    return supply
    return None


def _read_pids_of(mount: str, path: str) -> Supply | None:
    while True:
        folder = mount + path.rstrip("/")
        most, used = number(read_bytes(f"{folder}/pids.max")), number(read_bytes(f"{folder}/pids.current"))
        if most is not None and used is not None:
            return Supply(used, most)
        if path in ("", "/"):
            return None
        path = os.path.dirname(path)


def read_inodes(path: str | os.PathLike[str]) -> Supply | None:
    """Read a file system's inodes; None where it has no bound for them."""
    found = os.statvfs(path)
    return Supply(found.f_files - found.f_favail, found.f_files) if found.f_files else None
