"""Excuses: how long something could not be done, which no promise counts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Excuse:
    """How long something could not be done, in all: overlapping reasons count once."""

    total_s: float = 0.0
    until: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)

    def add(self, now: float, for_s: float) -> None:
        """From now on, for so long."""
        start, end = max(now, self.until), now + for_s
        if end > start:
            self.total_s += end - start
            self.until = end
            self.spans.append((start, end))

    def since(self, earlier: float, now: float) -> float:
        """Return how long, between two moments."""
        found = 0.0
        for start, end in reversed(self.spans):
            if end <= earlier:
                break
            found += max(0.0, min(end, now) - max(start, earlier))
        return found

    def by(self, now: float) -> float:
        """Return how long, up to a moment."""
        return self.total_s - max(0.0, self.until - now)
