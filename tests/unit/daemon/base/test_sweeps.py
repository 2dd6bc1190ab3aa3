"""Who swept hears what was judged and what became of each, once; nobody waits for ever."""

from __future__ import annotations

import asyncio

from vigil.core.effects import Judged, ReapEnded
from vigil.core.model.sighting import ReapAction, ReapClass, ReapOutcome, ReapVerdict
from vigil.daemon.base.sweeps import TAKES_LONG, Reaped, Sweeps

KEPT = ReapVerdict("a", "s1-1", ReapClass.KEEP, ReapAction.KEEP, ("it is young",))
IDLE = ReapVerdict("b", "s2-1", ReapClass.IDLE, ReapAction.PARK, ("last work: 2 h ago",))
STRAY = ReapVerdict("c", "s3-1", ReapClass.ORPHAN, ReapAction.KILL, ("it belongs to no session",))


async def test_what_was_judged_comes_back_with_what_became_of_it() -> None:
    sweeps = Sweeps()
    with sweeps.follow("t") as report:
        sweeps.judged(Judged("t", (KEPT, IDLE, STRAY)))
        asyncio.get_running_loop().call_later(0.01, sweeps.ended, ReapEnded("t", "s2-1", ReapOutcome.PARKED, "asleep"))
        asyncio.get_running_loop().call_later(0.02, sweeps.ended, ReapEnded("t", "s3-1", ReapOutcome.ENDED))
        found = await report.outcomes(10.0)

    assert found == [Reaped(KEPT), Reaped(IDLE, ReapOutcome.PARKED, "asleep"), Reaped(STRAY, ReapOutcome.ENDED)]


async def test_what_takes_long_is_unknown_and_the_first_word_counts() -> None:
    sweeps = Sweeps()
    with sweeps.follow("t") as report:
        sweeps.judged(Judged("t", (IDLE, STRAY)))
        sweeps.ended(ReapEnded("t", "s2-1", ReapOutcome.SPARED, "a person attached"))
        sweeps.ended(ReapEnded("t", "s2-1", ReapOutcome.PARKED))
        found = await report.outcomes(0.01)

    assert found == [Reaped(IDLE, ReapOutcome.SPARED, "a person attached"), Reaped(STRAY, ReapOutcome.UNKNOWN, TAKES_LONG)]


async def test_what_is_said_of_a_sweep_that_is_over_or_of_an_earlier_daemon_has_no_listener() -> None:
    sweeps = Sweeps()
    with sweeps.follow("t") as report:
        sweeps.judged(Judged("another", (IDLE,)))
        assert await report.outcomes(0.01) == []

    sweeps.judged(Judged("t", (IDLE,)))
    sweeps.ended(ReapEnded("t", "s2-1", ReapOutcome.PARKED))
    assert (report.verdicts, sweeps._under_way) == ((), {})
