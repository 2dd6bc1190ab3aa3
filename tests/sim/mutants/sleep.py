"""Mutants of sleep: what keeps a session from the reaper, who is woken, and with which conversation."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _both, _swap
from vigil.core.model.death import Cause
from vigil.core.model.sighting import ReapClass
from vigil.core.model.speech import Activity
from vigil.core.rules import reap, wake

SAID_WHILE_BUSY = {Activity.WAITING_HUMAN, Activity.THROTTLED}  # a turn or a tool that is open keeps too


def _wakes() -> Iterator[Mutant]:
    """DESIGN 4.6: who is to blame, and who is not woken."""
    for ended in (wake.PARKED, Cause.OPERATOR, Cause.KILLED_BY_UNKNOWN):
        blamed = _both(
            _swap(wake, "BLAMELESS", wake.BLAMELESS - {ended}),
            _swap(wake, "BROKEN", wake.BROKEN | {ended}),
        )
        yield Mutant("wake", f"{ended} is to blame", blamed, "people")
    for cause in (Cause.CRASH, Cause.UNOBSERVED):
        trusted = _both(
            _swap(wake, "BLAMELESS", wake.BLAMELESS | {cause}),
            _swap(wake, "BROKEN", wake.BROKEN - {cause}),
        )
        yield Mutant("wake", f"{cause} is not to blame", trusted, "people")
    for number, row in ((1, "what is stopped"), (2, "a crash loop")):
        left = wake.ROWS[:number] + wake.ROWS[number + 1 :]
        yield Mutant("wake", f"{row} is woken", _swap(wake, "ROWS", left), "people")


def _reaps() -> Iterator[Mutant]:
    """DESIGN 4.5: each row that keeps, dropped; and what counts as busy."""
    for number, rule in enumerate(reap.RULES):
        if rule.kind in (ReapClass.ATTACHED, ReapClass.BUSY, ReapClass.UNKNOWN):
            left = reap.RULES[:number] + reap.RULES[number + 1 :]
            yield Mutant("reap", f"{rule.kind} is no reason", _swap(reap, "RULES", left), "people")
    for said in sorted(set(reap.BUSY) & SAID_WHILE_BUSY):
        left_ = {known: words for known, words in reap.BUSY.items() if known is not said}
        yield Mutant("reap", f"{said} is not busy", _swap(reap, "BUSY", left_), "people")
