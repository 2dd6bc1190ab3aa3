"""Virtual time: what happens next, in order; nothing here waits for a real clock."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Engine:
    """A heap of moments. The host can be suspended: then everything due meanwhile happens when it wakes, in its order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.moments = 0
        self.frozen_until = 0.0
        self._coming: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, when: float, call: Callable[..., None], *args: Any) -> None:
        """Call something at a moment; one that is past comes next."""
        self._count += 1
        heappush(self._coming, (when, self._count, call, args))

    def after(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Call something after a while."""
        self.at(self.now + delay_s, call, *args)

    def suspend(self, for_s: float) -> None:
        """Let nothing happen for a while."""
        self.frozen_until = max(self.frozen_until, self.now + for_s)

    def run(self, until: float, at_most: int | None = None) -> bool:
        """Let time pass; say whether it got there before the moments ran out."""
        coming = self._coming
        while coming and coming[0][0] <= until:
            if at_most is not None and self.moments >= at_most:
                return False
            when, _, call, args = heappop(coming)
            self.moments += 1
            self.now = max(when, self.now, self.frozen_until)
            call(*args)
        self.now = max(self.now, until)
        return True
