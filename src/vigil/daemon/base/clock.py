"""The daemon's clock: wall time, read once a boot, that then follows the boot clock, so it counts suspends and never jumps.

An hour set forward is no silence, ends no backoff and forgives no crash, also not across a restart of the daemon."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from vigil.kernel import process
from vigil.kernel.durable import read_json, record_json


def boottime() -> float:
    """Read the boot clock: the seconds since boot, including suspends."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Clock:
    def __init__(self, steady: Callable[[], float] = boottime, wall: Callable[[], float] = time.time) -> None:
        self._steady = steady
        self._wall = wall
        self._offset = wall() - steady()

    def anchor(self, path: Path, boot: str) -> None:
        """Anchor the clock as this boot's last daemon did; the boot's first takes wall time."""
        known = read_json(str(path))
        offset = known.get("offset") if known and known.get("boot") == boot else None
        if isinstance(offset, float) and not boot.startswith(process.UNKNOWN_BOOT):
            self._offset = offset
        else:
            record_json(os.path.realpath(path), {"boot": boot, "offset": self._offset})

    def now(self) -> float:
        return self._offset + self._steady()

    def at(self, steady_s: float) -> float:
        """Return the time on the daemon's clock at a moment of the boot clock."""
        return self._offset + steady_s

    def off_s(self) -> float:
        """Return how far the wall clock was set ahead of the daemon's clock."""
        return self._wall() - self.now()


def next_tick_s(every_s: float) -> float:
    """Return the seconds until the loop's clock shows a multiple of `every_s`."""
    return every_s - asyncio.get_running_loop().time() % every_s
