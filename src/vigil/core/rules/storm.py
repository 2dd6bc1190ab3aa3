"""Storms: how long a route gathers notices, and how many go out as one summary. Pure: moments come in from outside."""

from __future__ import annotations

GATHER_S = 0.25  # after the first; in a storm while more come, up to STORM_S
STORM = 5  # so many waiting notices are a storm
STORM_QUIET_S = 0.5
STORM_S = 3.0


def gathered_at(first: float, last: float, waiting: int) -> float:
    """Return until when a route gathers notices, longer in a storm."""
    if waiting < STORM:
        return first + GATHER_S
    return min(first + STORM_S, max(first + GATHER_S, last + STORM_QUIET_S))


def together(waiting: int) -> int:
    """Return how many waiting notices go out as one: all of them in a storm."""
    return waiting if waiting >= STORM else min(1, waiting)
