"""Whoever waits for ticks wakes with all others that do."""

from __future__ import annotations

import asyncio

from vigil.daemon.base.clock import next_tick_s


async def test_ticks_of_whole_multiples_fall_on_the_same_moments() -> None:
    now = asyncio.get_running_loop().time()

    moments = [now + next_tick_s(every_s) for every_s in (1.0, 3.0, 5.0)]

    assert all(now < moment <= now + every_s + 0.1 for moment, every_s in zip(moments, (1.0, 3.0, 5.0), strict=True))
    assert all(abs((moment - moments[0] + 0.5) % 1.0 - 0.5) < 0.1 for moment in moments)
