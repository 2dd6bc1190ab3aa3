"""The kernel's log, as far as it names our processes: kills for want of memory, and faults; it says if it is unreadable.

Reads /dev/kmsg from its present end, and keeps only the kernel's own lines: privileged programs write there too."""

from __future__ import annotations

import errno
import os
import re
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from vigil.kernel.proc import PROC

RECORD_BYTES = 8192  # the kernel makes none longer
LINES = 500
LINE_CHARACTERS = 400
RECORDS_A_DRAIN = 5000  # a log that is written faster than we read does not hold us
RECORD = re.compile(r"(\d+),\d+,(\d+),[^;]*;(.*)")
TASK = re.compile(r"\[ *\d+\] +\d+ +\d+ ")  # of the list of all processes that comes with each kill
LOST_S = 60.0
USER_FACILITY = 8  # below it the kernel speaks
FIRST_PID_NAMESPACE = 0xEFFFFFFC  # the inode of the kernel's first pid namespace
DRIFT_S = 600.0  # nothing sets the log's clock: it is minutes off after months


class Line(NamedTuple):
    """One line: the kernel's time, the time we read it, and its text."""

    stamp_s: float
    heard_s: float
    text: str


def _boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class KernelLog:
    def __init__(
        self, path: str | None = None, clock: Callable[[], float] = _boot_s, awake: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._awake = awake  # the log's own clock, which stands still during a suspend
        self._lines: deque[Line] = deque(maxlen=LINES)
        self.lost_s = -LOST_S  # when lines were overwritten before we read them
        self._fd = -1
        try:
            self._fd = os.open(path or _find_log(), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:
            self.close()
        self.readable = self._fd >= 0

    def close(self) -> None:
        """Let go of the log; its kept lines stay."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def drain(self) -> None:
        """Take in what came since the last time."""
        if self._fd < 0:
            return
        heard_s = self._clock()
        for _ in range(RECORDS_A_DRAIN):
            try:
                record = os.read(self._fd, RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                self.lost_s = heard_s  # overwritten before we read it: the next one is there
                continue
            except OSError:
                self.readable = False
                return
            if not record:
                return
            self._lines += [line for line in parse(record, heard_s) if TASK.match(line.text) is None]

    def lines_about(self, pid: int, *, since_s: float = 0.0) -> list[str]:
        """Return the lines on a process that began at `since_s` after boot; older ones speak of another."""
        named = re.compile(rf"(?:process |pid=|PID: |\[){pid}(?!\d)")
        suspended_s = self._clock() - self._awake()
        eldest_s = since_s - max(0.0, suspended_s) - DRIFT_S
        return [
            line.text
            for line in self._lines
            if line.heard_s >= since_s and line.stamp_s >= eldest_s and named.search(line.text) is not None
        ]

    def line_of_kill(self, pid: int, *, since_s: float = 0.0) -> str | None:
        """Return the line of a process's kill for want of memory."""
        says = f"Killed process {pid} "
        return next((line for line in self.lines_about(pid, since_s=since_s) if says in line), None)

    def denies(self) -> bool | None:
        """Return False if a missing line was not written; None if it may have been lost or unread."""
        return False if self.readable and self._clock() - self.lost_s >= LOST_S else None


def _find_log() -> str:
    """Return the log's path; an error where its pids are not ours, as in a container."""
    if os.stat(f"{PROC}/self/ns/pid").st_ino != FIRST_PID_NAMESPACE:
        raise FileNotFoundError(errno.ENOENT, "the kernel's log numbers processes in another way")
    return "/dev/kmsg"


def parse(record: bytes, heard_s: float) -> list[Line]:
    """Return the kernel's own lines of a record, without the indented keys behind them."""
    lines = []
    for text in record.decode("utf-8", "replace").splitlines():
        found = RECORD.match(text)
        if found is not None and int(found[1]) < USER_FACILITY:
            lines.append(Line(int(found[2]) / 1e6, heard_s, found[3][:LINE_CHARACTERS]))
    return lines
