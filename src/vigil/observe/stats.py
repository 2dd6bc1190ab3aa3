"""Stats: one pass over /proc, what the kernel says of every process in one line each.

One pass answers for the whole fleet. Written by hand: psutil takes ten times as long (docs/performance.md, diagnosis).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from vigil.kernel.process import TICKS_A_SECOND

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
LINE_BYTES = 1024
CHILDREN_BYTES = 64 << 10
FLAGS = os.O_RDONLY | os.O_CLOEXEC


class TreeStat(NamedTuple):
    """One process, as /proc/PID/stat has it."""

    pid: int
    name: str
    state: str  # R S D T t Z X I; of its first thread, or if that ended, of one that lives
    ppid: int
    pgrp: int
    sid: int
    tty: int  # 0: it has no terminal
    tpgid: int  # the group in the foreground of its terminal
    own_ticks: int  # of CPU, its own threads'
    reaped_ticks: int  # of children that it has waited for, and of theirs
    threads: int
    start_ticks: int
    rss_bytes: int
    thread: int = 0  # one that lives, of a process whose first thread ended: only there are its files to be read

    @property
    def key(self) -> tuple[int, int]:
        """Pid and start: a recycled pid is another process."""
        return self.pid, self.start_ticks

    @property
    def all_ticks(self) -> int:
        """Its own CPU time with that of the children it has waited for: this much its parent gets when it ends."""
        return self.own_ticks + self.reaped_ticks


@dataclass(frozen=True, slots=True)
class Scan:
    """All processes of one moment; those that ended meanwhile are not there."""

    at_s: float  # since boot, the host's sleep included
    stats: dict[int, TreeStat]
    children: dict[int, list[int]] = field(default_factory=dict)
    why: str = ""  # nothing could be read
    hidden: int = 0  # processes of which nothing may be read

    def age_s(self, stat: TreeStat) -> float:
        """Return how long a process has been there."""
        return max(0.0, self.at_s - stat.start_ticks / TICKS_A_SECOND)


def read_scan(proc: str = "/proc") -> Scan:
    """Read the stat of every process; never raises for what /proc is or lacks."""
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    try:
        folder = os.open(proc, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return Scan(at_s, {}, why=f"{proc}: {error.strerror}")
    try:
        names = [name for name in os.listdir(folder) if name.isdigit()]
        found, hidden = _read_all(names, folder, proc)
    except OSError as error:
        return Scan(at_s, {}, why=f"{proc}: {error.strerror}")
    finally:
        os.close(folder)
    if not found:
        return Scan(at_s, {}, why=f"{proc}: no process can be read there", hidden=hidden)
    children: dict[int, list[int]] = {}
    for stat in found.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    return Scan(at_s, found, children, hidden=hidden)


def _read_all(names: Iterable[str], folder: int, proc: str) -> tuple[dict[int, TreeStat], int]:
    """Read many; flat, because a fleet has thousands."""
    found: dict[int, TreeStat] = {}
    hidden = 0
    open_, read, close = os.open, os.read, os.close
    for name in names:
        try:
            fd = open_(f"{name}/stat", FLAGS, dir_fd=folder)
            try:
                line = read(fd, LINE_BYTES)
            finally:
                close(fd)
        except PermissionError:
            hidden += 1
            continue
        except OSError:
            continue  # it ended
        stat = parse_stat(line)
        if stat is not None:
            found[stat.pid] = stat if stat.state != "Z" else _of_the_living(stat, proc)
    return found, hidden


def read_one(pid: int, proc: str = "/proc") -> TreeStat | None:
    """Read the stat of one process; None if it is not there or nobody may look."""
    stat = _read_stat(f"{proc}/{pid}/stat")
    return None if stat is None else _of_the_living(stat, proc)


def _read_stat(path: str) -> TreeStat | None:
    try:
        fd = os.open(path, FLAGS)
        try:
            return parse_stat(os.read(fd, LINE_BYTES))
        finally:
            os.close(fd)
    except OSError:
        return None


def _of_the_living(stat: TreeStat, proc: str) -> TreeStat:
    """Return a process as a thread of it that lives has it, if its first one ended: it is no zombie, and has its memory."""
    if stat.state != "Z" or stat.threads == 1:
        return stat
    try:
        names = os.listdir(f"{proc}/{stat.pid}/task")
    except OSError:
        return stat  # it ended
    threads = (_read_stat(f"{proc}/{stat.pid}/task/{name}/stat") for name in names)
    living = next((one for one in threads if one is not None and one.state not in "ZX"), None)
    return stat if living is None else stat._replace(state=living.state, rss_bytes=living.rss_bytes, thread=living.pid)


def read_children(pid: int, threads: int, proc: str = "/proc") -> list[int]:
    """Read the children of all threads of a process; OSError where this kernel does not tell them."""
    if threads == 1:
        return _read_children_of(pid, pid, proc)
    try:
        names = os.listdir(f"{proc}/{pid}/task")
    except OSError:
        return []
    return [child for name in names for child in _read_children_of(pid, int(name), proc)]


def _read_children_of(pid: int, thread: int, proc: str) -> list[int]:
    task = f"{proc}/{pid}/task/{thread}"
    try:
        fd = os.open(f"{task}/children", FLAGS)
        try:
            parts = []
            while part := os.read(fd, CHILDREN_BYTES):
                parts.append(part)
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists(task):
            raise
        return []  # this thread ended
    return list(map(int, b"".join(parts).split()))


def parse_stat(line: bytes) -> TreeStat | None:
    """Return what a line says; None if it is none."""
    head, _, rest = line.rpartition(b")")  # the name may hold spaces and brackets
    pid, _, name = head.partition(b" (")
    field = rest.split(None, 22)
    if len(field) < 22:
        return None
    return TreeStat(
        int(pid),
        name.decode("utf-8", "replace"),
        field[0].decode(),
        int(field[1]),
        int(field[2]),
        int(field[3]),
        int(field[4]),
        int(field[5]),
        int(field[11]) + int(field[12]),
        int(field[13]) + int(field[14]),
        int(field[17]),
        int(field[19]),
        int(field[21]) * PAGE_BYTES,
    )
