"""Gaps: time in which the daemon could not look, because the host slept or nobody ran it; no verdict may rest on it."""

from __future__ import annotations

from collections.abc import Callable

BEAT_S = 1.0  # how often the loop says that it runs
ALLOWED_S = 2.0  # by so much a beat may be late before what was read meanwhile is void


class Gaps:
    """Knows when the loop last ran, on a clock that goes on while the host sleeps and never jumps."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._beat_at = now()

    def beat(self) -> None:
        """Say that the loop runs; what was missed by then has been asked for."""
        self._beat_at = self._now()

    def missed_s(self) -> float:
        """Return for how long nobody looked since the last beat, once; 0 if that is no gap."""
        missed_s = self._now() - self._beat_at - BEAT_S
        if missed_s <= ALLOWED_S:
            return 0.0
        self.beat()
        return missed_s
