"""Ticks: those who look again and again wake at the same moments, because a wake-up costs as much as most looks."""

from __future__ import annotations

import asyncio


def next_tick_s(every_s: float) -> float:
    """Return how long it is until the loop's clock is at a multiple of this."""
    return every_s - asyncio.get_running_loop().time() % every_s
