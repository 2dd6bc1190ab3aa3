"""What the kernel says of a process: who it is, whether it lives, how it ended.

Reads only. Standard library only, because the keeper uses it; raw reads of /proc because they cost a tenth of psutil's
(docs/performance.md).
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
from typing import NamedTuple

PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11  # _IOWR(0xFF, 11, 64 bytes)
PIDFD_INFO_EXIT = 1 << 3  # Linux 6.15 and up; set once the process was reaped
EXIT_CODE_AT = 60
UNKNOWN_BOOT = "unknown"
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that identity and liveness rest on."""

    name: str
    state: str
    ppid: int
    pgrp: int
    sid: int
    threads: int
    start_ticks: int
    wait_status: int
    rss_kb: int = 0


def read_stat(pid: int) -> Stat | None:
    """Read a process's stat; None if there is no such process."""
    text = b""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # a third cheaper than `open`: a sweep does little else
        try:
            text = os.read(fd, 1024)
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        return None
    head, _, rest = text.rpartition(b")")  # the name may hold spaces and brackets
    field = rest.split()
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return Stat(
        name,
        field[0].decode(),
        int(field[1]),
        int(field[2]),
        int(field[3]),
        int(field[17]),
        int(field[19]),
        int(field[49]),
        int(field[21]) * PAGE_KB,
    )


def read_start_ticks(pid: int) -> int | None:
    """Read when a process began, in ticks since boot; with its pid that is its identity."""
    stat = read_stat(pid)
    return None if stat is None else stat.start_ticks


def read_peak_kb(pid: int) -> int | None:
    """Read the most memory that a process has had since its exec; None if it has ended or may not be read."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            _, found, rest = file.read().partition(b"\nVmHWM:")
    except OSError:
        return None
    return int(rest.split(None, 1)[0]) if found else None


def read_boot() -> str:
    """Read the identity of this boot: the boot id, and PID 1's start for a restarted container."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
    except OSError:
        boot_id = UNKNOWN_BOOT
    try:
        first = read_start_ticks(1) or 0
    except OSError:  # /proc mounted with hidepid
        first = 0
    return f"{boot_id}:{first}"


def is_other_boot(boot: str, now: str) -> bool:
    """Say whether a boot is surely not this one; one that could not be read proves nothing."""
    return boot != now and not boot.startswith(UNKNOWN_BOOT) and not now.startswith(UNKNOWN_BOOT)


def is_alive(pid: int, start_ticks: int) -> bool:
    """Say whether this very process lives; a zombie without other living threads does not."""
    stat = read_stat(pid)
    if stat is None or stat.start_ticks != start_ticks or stat.state == "X":
        return False
    return stat.state != "Z" or stat.threads > 1


def has_left(pid: int) -> bool:
    """Say whether a pid is nobody's or a zombie's: what /proc said of its surroundings may not be true."""
    try:
        stat = read_stat(pid)
    except OSError:  # /proc mounted with hidepid
        return False
    return stat is None or stat.state in "ZX"


def open_pidfd(pid: int, start_ticks: int) -> int | None:
    """Open a pidfd of exactly this process; None if it is gone or its pid belongs to another."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        if error.errno in (errno.ESRCH, errno.EINVAL, errno.ENOENT):  # the last two: the number is a thread's now
            return None
        raise
    # Read after opening: the fd pins the pid, so what stat says now is said of what the fd holds.
    if read_start_ticks(pid) == start_ticks:
        return pidfd
    os.close(pidfd)
    return None


def has_ended(pidfd: int) -> bool:
    """Say whether the process behind a pidfd has ended (its leader is a zombie or reaped)."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def read_wait_status(pidfd: int, pid: int, start_ticks: int) -> tuple[int | None, str]:
    """Read how a process that is no child of ours ended; returns its wait status and who said so."""
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
        if stat is not None and stat.start_ticks == start_ticks and stat.state in "ZX":
            return stat.wait_status, "zombie"
    return None, ""


def split_status(status: int | None) -> tuple[int | None, int | None]:
    """Split a wait status into exit code and signal."""
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None
