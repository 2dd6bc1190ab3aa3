"""The daemon's clock: wall time that does not jump.

Anchored to wall time once a boot; from then on it follows the boot clock, which counts suspends and knows no steps. So an hour
set forward is no hour of silence, no backoff that is over and no uptime that forgives, also not across a daemon's restart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from vigil.kernel import process
from vigil.kernel.durable import read_json, record_json


def boottime() -> float:
    """Return the seconds since boot, those of suspends included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Clock:
    """Seconds since the epoch, steady."""

    def __init__(self, steady: Callable[[], float] = boottime, wall: Callable[[], float] = time.time) -> None:
        self._steady = steady
        self._wall = wall
        self._offset = wall() - steady()

    def anchor(self, path: Path, boot: str) -> None:
        """Go on where the last daemon of this boot was; the first one of a boot takes the wall's time."""
        known = read_json(str(path))
        offset = known.get("offset") if known and known.get("boot") == boot else None
        if isinstance(offset, float) and not boot.startswith(process.UNKNOWN_BOOT):
            self._offset = offset
        else:
            record_json(str(path), {"boot": boot, "offset": self._offset})

    def now(self) -> float:
        """Return the time."""
        return self._offset + self._steady()

    def at(self, steady_s: float) -> float:
        """Return the time of a moment of the boot clock."""
        return self._offset + steady_s

    def off_s(self) -> float:
        """Return by how much the wall's time was set since: what is shown is so much behind it."""
        return self._wall() - self.now()


def next_tick_s(every_s: float) -> float:
    """Return how long it is until the loop's clock is at a multiple of this."""
    return every_s - asyncio.get_running_loop().time() % every_s
