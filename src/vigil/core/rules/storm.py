"""Folding: how long a route gathers notices before it delivers, and how many of them go out as one (a storm is one summary).

Pure: moments come in from outside.
"""

from __future__ import annotations

GATHER_S = 0.25  # after the first of them; in a storm as long as more come, but not for ever
STORM = 5  # so many waiting at once are a storm
STORM_QUIET_S = 0.5
STORM_S = 3.0


def gathered_at(first: float, last: float, waiting: int) -> float:
    """Return until when a route waits for more, by when the first and the last of those that wait came."""
    if waiting < STORM:
        return first + GATHER_S
    return min(first + STORM_S, max(first + GATHER_S, last + STORM_QUIET_S))


def together(waiting: int) -> int:
    """Return how many of those that wait are delivered as one."""
    return waiting if waiting >= STORM else min(1, waiting)
