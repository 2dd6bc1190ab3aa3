"""The daemon's clock: wall time that does not jump.

Anchored to wall time once, at start; from then on it follows the boot clock, which counts suspends and knows no steps. So an
hour set forward is no hour of silence.
"""

from __future__ import annotations

import time


class Clock:
    """Seconds since the epoch, steady."""

    def __init__(self) -> None:
        self._offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        """Return the time."""
        return self._offset + time.clock_gettime(time.CLOCK_BOOTTIME)
