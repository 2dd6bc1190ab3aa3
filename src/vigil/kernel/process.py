"""What the kernel says of a process: who it is, whether it lives, how it ended. Standard library only: the keeper uses it."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import struct
from sys import intern
from typing import NamedTuple

from vigil.kernel.proc import PROC, folder_of, read_file
from vigil.kernel.shortage import RESERVE

PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11  # _IOWR(0xFF, 11, 64 bytes)
PIDFD_INFO_EXIT = 1 << 3  # Linux 6.15 and up; set once the process was reaped
EXIT_CODE_AT = 60
UNKNOWN_BOOT = "unknown"
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
LINE_BYTES = 1024  # a line of stat has about three hundred
STATUS_BYTES = 8192
NUMBER_BYTES = 32  # with the blanks before it
ENDED = "ZX"
STOPPED = ("T", "t")
# Fields of stat, counted from the state; the first are split, the rest only where needed.
FLAGS_AT, SPLIT, PENDING_AT, EXIT_SIGNAL_AT, STATUS_AT = 6, 22, 28, 35, 49
NO_SIGNAL = -1  # of a thread: the kernel itself tells threads from processes by it, without a look at their Tgid
NO_PROCESS = (errno.ESRCH, errno.EINVAL, errno.ENOENT)  # the last two: the number is a thread's, a group's or a session's
PF_EXITING = 0x4
SIGKILL_BIT = 1 << (signal.SIGKILL - 1)


class Stat(NamedTuple):
    """One process, as /proc/PID/stat has it."""

    pid: int
    name: str
    state: str  # R S D T t Z X I
    ppid: int
    pgrp: int
    sid: int
    tty: int  # 0: it has no terminal
    tpgid: int  # the group in the foreground of its terminal
    own_ticks: int  # of CPU, its own threads'
    reaped_ticks: int  # of children that it has waited for, and of theirs
    threads: int
    start_ticks: int
    rss_kb: int = 0
    wait_status: int | None = None  # of one that ended
    thread: int = 0  # a living one, of a process whose first thread ended (stats.py)

    @property
    def key(self) -> tuple[int, int]:
        """Pid and start: a recycled pid is another process."""
        return self.pid, self.start_ticks

    @property
    def all_ticks(self) -> int:
        """Its own CPU time and that of the children it has waited for: its parent gets this much at its end."""
        return self.own_ticks + self.reaped_ticks

    @property
    def rss_bytes(self) -> int:
        return self.rss_kb * 1024


def read_stat(pid: int, proc: str = PROC) -> Stat | None:
    """Read a process's stat; None if there is no such process: /proc answers for a thread's number too."""
    try:
        line = RESERVE.call(read_file, f"{proc}/{pid}/stat", LINE_BYTES)
    except (FileNotFoundError, ProcessLookupError):
        return None
    if (stat := parse_stat(line)) is None:
        raise OSError(errno.EIO, f"the stat of pid {pid} is no line of the kernel's")
    return None if is_thread(line) else stat


def is_thread(line: bytes) -> bool:
    """Say whether a line of stat is a thread's that is not its process's first."""
    rest = line.rpartition(b")")[2]
    return b" -1 " in rest and _number_at(EXIT_SIGNAL_AT, rest) == NO_SIGNAL


def parse_stat(line: bytes) -> Stat | None:
    """Return what a line of stat says; None for another line."""
    head, _, rest = line.rpartition(b")")  # the name may hold spaces and brackets
    pid, _, name = head.partition(b" (")
    field = rest.split(None, SPLIT)
    if len(field) < SPLIT:
        return None
    state = field[0].decode()
    return Stat(
        int(pid),
        intern(name.decode("utf-8", "replace")),  # a fleet has few, thousands of times
        state,
        int(field[1]),
        int(field[2]),
        int(field[3]),
        int(field[4]),
        int(field[5]),
        int(field[11]) + int(field[12]),
        int(field[13]) + int(field[14]),
        int(field[17]),
        int(field[19]),
        int(field[21]) * PAGE_KB,
        _number_at(STATUS_AT, rest) if state in ENDED else None,
    )


def _number_at(at: int, rest: bytes) -> int | None:
    field = rest.split()
    return int(field[at]) if len(field) > at else None


def is_stopped(pid: int, start_ticks: int | None = None) -> bool:
    """Say whether the kernel has stopped a process: it answers nobody until it goes on; None is whoever has that pid now."""
    try:
        found = read_stat(pid)
    except OSError:
        return False
    return found is not None and found.state in STOPPED and start_ticks in (None, found.start_ticks)


def is_dying(pid: int) -> bool:
    """Say whether a process is on its way out: its sockets stay open until its last thread is gone."""
    try:
        line = read_file(f"{PROC}/{pid}/stat", LINE_BYTES)
    except OSError:
        return False
    stat, rest = parse_stat(line), line.rpartition(b")")[2]
    if stat is None or is_thread(line):
        return False
    flags, pending = _number_at(FLAGS_AT, rest) or 0, _number_at(PENDING_AT, rest) or 0
    return stat.state in ENDED or bool(flags & PF_EXITING or pending & SIGKILL_BIT)


def read_start_ticks(pid: int) -> int | None:
    """Read when a process began, in ticks since boot; with its pid that is its identity."""
    stat = read_stat(pid)
    return None if stat is None else stat.start_ticks


def read_peak_kb(pid: int) -> int | None:
    """Read a process's peak memory since its exec; None if it ended or may not be read."""
    return _read_status(pid, b"VmHWM")


def read_swap_kb(pid: int) -> int | None:
    """Read how much of a process's memory is swapped out; None if it ended or may not be read."""
    return _read_status(pid, b"VmSwap")


def _read_status(pid: int, name: bytes) -> int | None:
    try:
        return number_in(read_file(f"{folder_of(pid)}/status", STATUS_BYTES), name)
    except OSError:
        return None


def number_in(status: bytes, name: bytes) -> int | None:
    """Return the number of a line of /proc/PID/status; None without that line."""
    key = b"\n" + name + b":"
    at = status.find(key) + len(key)
    return int(status[at : at + NUMBER_BYTES].split(None, 1)[0]) if at >= len(key) else None


def read_boot() -> str:
    """Read the identity of this boot: the boot id, and PID 1's start for a restarted container."""
    try:
        boot_id = read_file(f"{PROC}/sys/kernel/random/boot_id", LINE_BYTES).decode("ascii").strip()
    except OSError:
        boot_id = UNKNOWN_BOOT
    try:
        first = read_start_ticks(1) or 0
    except OSError:  # /proc mounted with hidepid
        first = 0
    return f"{boot_id}:{first}"


def is_other_boot(boot: str, now: str) -> bool:
    """Say whether a boot is surely not this one; an unreadable one proves nothing."""
    return boot != now and not boot.startswith(UNKNOWN_BOOT) and not now.startswith(UNKNOWN_BOOT)


def is_alive(pid: int, start_ticks: int) -> bool:
    """Say whether this very process lives; a zombie without other living threads does not."""
    stat = read_stat(pid)
    if stat is None or stat.start_ticks != start_ticks or stat.state == "X":
        return False
    return stat.state != "Z" or stat.threads > 1


def has_left(pid: int) -> bool:
    """Say whether a pid is free or a zombie's: then /proc may have told wrong surroundings."""
    try:
        stat = read_stat(pid)
    except OSError:  # /proc mounted with hidepid
        return False
    return stat is None or stat.state in ENDED


def open_pidfd(pid: int, start_ticks: int) -> int | None:
    """Open a pidfd of exactly this process; None if it is gone or its pid belongs to another."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        if error.errno in NO_PROCESS:
            return None
        raise
    # Read after opening: the fd pins the pid, so stat now speaks of the process that the fd holds.
    try:
        is_its = read_start_ticks(pid) == start_ticks
    except OSError:  # the last descriptor was this one
        os.close(pidfd)
        raise
    if is_its:
        return pidfd
    os.close(pidfd)
    return None


def has_ended(pidfd: int) -> bool:
    """Say whether the process behind a pidfd has ended (its leader is a zombie or reaped)."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def read_wait_status(pidfd: int, pid: int, start_ticks: int) -> tuple[int | None, str]:
    """Read how a process that is not our child ended; returns its wait status and the source."""
    for _ in range(3):  # it may be reaped between the two questions: then the first has the answer
        info = bytearray(64)
        struct.pack_into("<Q", info, 0, PIDFD_INFO_EXIT)
        try:
            fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EINVAL, errno.ESRCH):
                raise
        else:
            if struct.unpack_from("<Q", info, 0)[0] & PIDFD_INFO_EXIT:
                return struct.unpack_from("<i", info, EXIT_CODE_AT)[0], "pidfd"
        stat = read_stat(pid)
        if stat is not None and stat.start_ticks == start_ticks and stat.state in ENDED:
            return stat.wait_status, "zombie"
    return None, ""


def split_status(status: int | None) -> tuple[int | None, int | None]:
    """Split a wait status into exit code and signal."""
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None
