"""Processes as /proc shows them: all of the host, those of one launch, those below one process.

Reads only; what ends meanwhile, or may not be read, is left out. Programs are known by their short names: arguments are never
read, and of an environment only the launch and the spool it names. Standard library only.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from vigil.kernel import process

TOKEN = b"VIGIL_LAUNCH="
SPOOL = b"VIGIL_SPOOL="
ENVIRON_BYTES = 1 << 20
USUAL_BYTES = 32 << 10  # room for more costs as much as all the rest of a look at a process
Marks = tuple[str | None, str | None]  # the launch and the spool that an environment names
NO_MARKS: Marks = (None, None)


class ScannedProcess(NamedTuple):
    """One living process: who it is, which launch it says it belongs to, and where that launch's instance listens."""

    pid: int
    stat: process.Stat
    launch: str | None
    mine: bool
    spool: str | None = None


def scan_processes(mine_only: bool = False) -> Iterator[ScannedProcess | None]:
    """Go through all processes, a step each, so that a reader may pause; None is one that was left out."""
    uid = os.getuid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield _read_seen(name, uid, mine_only)


def _read_seen(name: str, uid: int, mine_only: bool) -> ScannedProcess | None:
    try:
        mine = os.stat(f"/proc/{name}").st_uid == uid
        if mine_only and not mine:
            return None
        stat = process.read_stat(int(name))
        if stat is None or stat.state == "X" or (stat.state == "Z" and stat.threads == 1):
            return None
        launch, spool = _read_marks_of(name, stat) if mine else NO_MARKS
        return ScannedProcess(int(name), stat, launch, mine, spool)
    except OSError:
        return None


def _read_marks_of(name: str, stat: process.Stat) -> Marks:
    """Read what a process names; one whose first thread ended tells it by those that live."""
    if stat.state != "Z":
        return _read_marks(name)
    for thread in os.listdir(f"/proc/{name}/task"):
        try:
            if (found := _read_marks(f"{name}/task/{thread}")) != NO_MARKS:
                return found
        except OSError:
            continue  # this thread ended
    return NO_MARKS


def _read_marks(place: str) -> Marks:
    environ = read_environ(f"/proc/{place}")
    launch = _value(environ, TOKEN)
    if launch is None:
        return NO_MARKS
    spool = _value(environ, SPOOL)
    return launch.decode("ascii", "replace"), os.fsdecode(spool) if spool else None


def read_environ(folder: str) -> bytes:
    """Read the environment of a process or thread by its folder in /proc; OSError if it is gone or somebody else's."""
    fd = os.open(f"{folder}/environ", os.O_RDONLY | os.O_CLOEXEC)
    try:
        environ = os.read(fd, USUAL_BYTES)
        return environ if len(environ) < USUAL_BYTES else environ + os.read(fd, ENVIRON_BYTES)
    finally:
        os.close(fd)


def _value(environ: bytes, key: bytes) -> bytes | None:
    _, found, rest = (b"\0" + environ).partition(b"\0" + key)
    return rest.partition(b"\0")[0] if found else None


def read_tree(pid: int, start_ticks: int, most: int) -> list[tuple[int, process.Stat]]:
    """Read a process and those below it, nearest first; nothing if it is gone."""
    found: list[tuple[int, process.Stat]] = []
    below = deque([pid])
    while below and len(found) < most:
        next_ = below.popleft()
        try:
            stat = process.read_stat(next_)
            if stat is None or (next_ == pid and stat.start_ticks != start_ticks):
                continue
            found.append((next_, stat))
            below += _read_children(next_, stat.threads)
        except OSError:
            continue
    return found


def _read_children(pid: int, threads: int) -> list[int]:
    """Read the children of all threads of a process; most have one thread, which need not be looked for."""
    found: list[int] = []
    for thread in [str(pid)] if threads == 1 else os.listdir(f"/proc/{pid}/task"):
        try:
            fd = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # this thread ended
        try:
            found += map(int, os.read(fd, 65536).split())
        finally:
            os.close(fd)
    return found
