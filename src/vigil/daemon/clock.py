"""The daemon's clock: wall time that does not jump.

Anchored to wall time once, at start; from then on it follows the boot clock, which counts suspends and knows no steps. So an
hour set forward is no hour of silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def boottime() -> float:
    """Return the seconds since boot, those of suspends included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Clock:
    """Seconds since the epoch, steady."""

    def __init__(self, steady: Callable[[], float] = boottime, wall: Callable[[], float] = time.time) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def now(self) -> float:
        """Return the time."""
        return self._offset + self._steady()
