"""Processes as /proc shows them: all of the host, those below one, their commands and environments.

A scan leaves out what ends or may not be read; of an environment it takes only the launch and the spool."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from vigil.kernel import process
from vigil.kernel.descent import read_mark
from vigil.kernel.host import number, read_bytes
from vigil.kernel.proc import PROC, folder_of, read_file

TOKEN = b"VIGIL_LAUNCH="
SPOOL = b"VIGIL_SPOOL="
SESSION = b"VIGIL_SESSION="
ENVIRON_BYTES = 1 << 20
USUAL_BYTES = 32 << 10  # more room costs as much as all the rest of a look
CHILDREN_BYTES = 64 << 10
COMMAND_BYTES = 4096
Marks = tuple[str | None, str | None]  # the launch and the spool that an environment names
NO_MARKS: Marks = (None, None)


class ScannedProcess(NamedTuple):
    """One living process: who it is, the launch it names, and that launch's instance's spool."""

    pid: int
    stat: process.Stat
    launch: str | None
    mine: bool
    spool: str | None = None
    mark: int | None = None  # that it inherited, if it names no launch


def scan_processes(mine_only: bool = False) -> Iterator[ScannedProcess | None]:
    """Go through all processes, a step each, so that a reader may pause; None is one left out."""
    uid = os.getuid()
    for pid in read_pids():
        yield _read_seen(pid, uid, mine_only)


def read_pids() -> list[int]:
    """Read the pids of all processes; OSError if it cannot."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def _read_seen(pid: int, uid: int, mine_only: bool) -> ScannedProcess | None:
    try:
        mine = read_owner(pid) == uid
        if mine_only and not mine:
            return None
        stat = process.read_stat(pid)
        if stat is None or stat.state == "X" or (stat.state == "Z" and stat.threads == 1):
            return None
        launch, spool = _read_marks_of(stat) if mine else NO_MARKS
        mark = read_mark(pid) if mine and launch is None else None
        return ScannedProcess(stat.pid, stat, launch, mine, spool, mark)
    except OSError:
        return None


def read_owner(pid: int) -> int:
    """Read a process's user; OSError if it is gone."""
    return os.stat(folder_of(pid)).st_uid


def _read_marks_of(stat: process.Stat) -> Marks:
    """Read a process's marks; one whose first thread ended tells them by a living one."""
    if stat.state != "Z":
        return _read_marks(stat.pid)
    for thread in os.listdir(f"{folder_of(stat.pid)}/task"):
        try:
            if (found := _read_marks(stat.pid, int(thread))) != NO_MARKS:
                return found
        except OSError:
            continue  # this thread ended
    return NO_MARKS


def _read_marks(pid: int, thread: int = 0) -> Marks:
    environ = read_environ(pid, thread=thread)
    launch = value_of(TOKEN, environ)
    if launch is None:
        return NO_MARKS
    spool = value_of(SPOOL, environ)
    return launch.decode("ascii", "replace"), os.fsdecode(spool) if spool else None


def read_launch(pid: int) -> str | None:
    """Read the launch that a process names; None if it names none or is gone."""
    try:
        return _read_marks(pid)[0]
    except OSError:
        return None


def read_environ(pid: int, proc: str = PROC, thread: int = 0) -> bytes:
    """Read the environment of a process or thread; OSError if it is gone or another user's."""
    fd = os.open(f"{folder_of(pid, proc, thread)}/environ", os.O_RDONLY | os.O_CLOEXEC)
    try:
        environ = os.read(fd, USUAL_BYTES)
        return environ if len(environ) < USUAL_BYTES else environ + os.read(fd, ENVIRON_BYTES)
    finally:
        os.close(fd)


def value_of(key: bytes, environ: bytes) -> bytes | None:
    """Return the value behind a key such as `HOME=` in an environment; None without it."""
    _, found, rest = (b"\0" + environ).partition(b"\0" + key)
    return rest.partition(b"\0")[0] if found else None


def read_command(pid: int, proc: str = PROC, thread: int = 0, most_bytes: int = COMMAND_BYTES) -> list[bytes]:
    """Read the words of a process's command, none of a zombie; OSError if it is gone or may not be read."""
    line = read_file(f"{folder_of(pid, proc, thread)}/cmdline", most_bytes).rstrip(b"\0")
    return line.split(b"\0") if line else []


def read_cwd(pid: int) -> str:
    """Read where a process works; OSError if it is gone or may not be read."""
    return os.readlink(f"{folder_of(pid)}/cwd")


def read_oom_score(pid: int) -> int | None:
    """Read how soon the kernel would kill a process for want of memory; None if it does not tell."""
    return number(read_bytes(f"{folder_of(pid)}/oom_score"))


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
            below += read_children(next_, stat.threads)
        except OSError:
            continue
    return found


def read_children(pid: int, threads: int, proc: str = PROC) -> list[int]:
    """Read the children of all threads of a process; OSError where this kernel does not tell them."""
    if threads == 1:  # as most have: no need to list them
        return _read_children_of(pid, pid, proc)
    try:
        names = os.listdir(f"{folder_of(pid, proc)}/task")
    except OSError:
        return []
    return [child for name in names for child in _read_children_of(pid, int(name), proc)]


def _read_children_of(pid: int, thread: int, proc: str) -> list[int]:
    task = folder_of(pid, proc, thread)
    try:
        fd = os.open(f"{task}/children", os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(fd, CHILDREN_BYTES):  # the kernel gives a page at a time
                parts.append(part)
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists(task):
            raise
        return []  # this thread ended
    return list(map(int, b"".join(parts).split()))
