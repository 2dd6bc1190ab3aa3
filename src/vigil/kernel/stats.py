"""Stats: one pass over /proc for the whole fleet, one line of every process; psutil takes 570 times as long."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import NamedTuple

from vigil.kernel.proc import PROC, folder_of, read_file
from vigil.kernel.process import ENDED, LINE_BYTES, TICKS_A_SECOND, Stat, is_thread, parse_stat, read_stat


class Scan(NamedTuple):
    """All processes of one moment; those that ended meanwhile are not there."""

    at_s: float  # since boot, with suspends
    stats: dict[int, Stat]
    children: dict[int, list[int]]
    why: str = ""  # why nothing could be read
    hidden: int = 0  # processes of which nothing may be read

    def age_s(self, stat: Stat) -> float:
        """Return a process's age."""
        return max(0.0, self.at_s - stat.start_ticks / TICKS_A_SECOND)


def read_scan(proc: str = PROC) -> Scan:
    """Read the stat of every process; never raises for what /proc is or lacks."""
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    try:
        folder = os.open(proc, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return Scan(at_s, {}, {}, why=f"{proc}: {error.strerror}")
    try:
        names = [name for name in os.listdir(folder) if name.isdigit()]
        found, hidden = _read_all(names, folder, proc)
    except OSError as error:
        return Scan(at_s, {}, {}, why=f"{proc}: {error.strerror}")
    finally:
        os.close(folder)
    if not found:
        return Scan(at_s, {}, {}, why=f"{proc}: no process can be read there", hidden=hidden)
    children: dict[int, list[int]] = {}
    for stat in found.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    return Scan(at_s, found, children, hidden=hidden)


def _read_all(names: Iterable[str], folder: int, proc: str) -> tuple[dict[int, Stat], int]:
    """Read many, and count those that may not be read."""
    found: dict[int, Stat] = {}
    hidden = 0
    for name in names:
        try:
            line = read_file(f"{name}/stat", LINE_BYTES, dir_fd=folder)
        except PermissionError:
            hidden += 1
            continue
        except OSError:
            continue  # it ended
        stat = parse_stat(line)
        if stat is not None and not is_thread(line):  # its number may have become a thread's since the folder was listed
            found[stat.pid] = stat if stat.state != "Z" else _of_the_living(stat, proc)
    return found, hidden


def read_living(pid: int, proc: str = PROC) -> Stat | None:
    """Read the stat of one process, by a living thread; None if it is gone or may not be read."""
    try:
        stat = read_stat(pid, proc)
    except OSError:
        return None
    return None if stat is None else _of_the_living(stat, proc)


def _of_the_living(stat: Stat, proc: str) -> Stat:
    """Return a process by a living thread if its first one ended: it is no zombie, and has its memory."""
    if stat.state != "Z" or stat.threads == 1:
        return stat
    try:
        names = os.listdir(f"{folder_of(stat.pid, proc)}/task")
    except OSError:
        return stat  # it ended
    threads = (_read_thread(f"{folder_of(stat.pid, proc, int(name))}/stat") for name in names)
    living = next((one for one in threads if one is not None and one.state not in ENDED), None)
    return stat if living is None else stat._replace(state=living.state, rss_kb=living.rss_kb, thread=living.pid)


def _read_thread(path: str) -> Stat | None:
    try:
        return parse_stat(read_file(path, LINE_BYTES))
    except OSError:
        return None  # it ended
