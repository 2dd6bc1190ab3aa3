"""What the kernel says, read without Vigil: processes, their tokens, how they ended, and signals to exactly one of them."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
EXIT = 1 << 3  # of its mask: the status is known
BOOTED_AT = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class Seen(NamedTuple):
    pid: int
    start: int
    state: str
    ppid: int

    @property
    def began_at(self) -> float:
        return moment_of(self.start)


def moment_of(ticks: int) -> float:
    """Return when a process began."""
    return BOOTED_AT + ticks / TICKS


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def look(pid: int) -> Seen | None:
    """Read one process; None if there is none, or it is over."""
    line = _read(f"/proc/{pid}/stat").decode("ascii", "replace").rpartition(")")[2].split()
    if len(line) < 20 or line[0] in "ZX":
        return None
    return Seen(pid, int(line[19]), line[0], int(line[1]))


def is_there(pid: int, start: int) -> bool:
    seen = look(pid)
    return seen is not None and seen.start == start


def command_of(pid: int) -> list[str]:
    return [os.fsdecode(word) for word in _read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]]


def environment_of(pid: int) -> dict[str, str]:
    pairs = (os.fsdecode(line).partition("=") for line in _read(f"/proc/{pid}/environ").split(b"\0"))
    return {key: value for key, _, value in pairs if key}


def open_pidfd(pid: int, start: int) -> int | None:
    """Hold one process; None if it is no longer this one."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    if is_there(pid, start):
        return fd
    os.close(fd)
    return None


def send(pid: int, start: int, number: int) -> bool:
    """Signal this very process; say whether it was still there."""
    fd = open_pidfd(pid, start)
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def status_of(fd: int, pid: int) -> int | None:
    """Return the wait status of a process that ended; None while the kernel does not say."""
    line = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(line) > 49 and line[0] == b"Z":
        return int(line[49])
    asked = bytearray(struct.pack("Q", EXIT).ljust(64, b"\0"))
    try:
        fcntl.ioctl(fd, PIDFD_GET_INFO, asked)
    except OSError:
        return None
    mask: int = struct.unpack_from("Q", asked)[0]
    status: int = struct.unpack_from("i", asked, 60)[0]
    return status if mask & EXIT else None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
