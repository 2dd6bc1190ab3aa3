"""Mutants of sleep: what keeps a session from the reaper, who is woken, and with which conversation."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _both, _handled, _rules, _swap
from vigil.core.model.death import Cause
from vigil.core.model.sighting import ReapClass
from vigil.core.model.speech import Activity
from vigil.core.rules import reap, wake

WAKES = (*_rules("wake"), *_handled("conversation"))
REAPS = (*_rules("reap"), *_handled("reap"))
SEEN_ENDS = (wake.PARKED, Cause.OPERATOR, Cause.KILLED_BY_UNKNOWN, Cause.CRASH, Cause.UNOBSERVED)  # of who is woken in worlds
SEEN_ROWS = {1: "what is stopped", 2: "a crash loop"}
KEPT = (ReapClass.ATTACHED, ReapClass.BUSY, ReapClass.UNKNOWN)
SAID_WHILE_BUSY = {Activity.WAITING_HUMAN, Activity.THROTTLED}  # with the others a turn or a tool is open, and keeps too


def _wakes() -> Iterator[Mutant]:
    """DESIGN 4.6: who is to blame, and who is not woken."""
    for ended in sorted(wake.BLAMELESS):
        blamed = _both(
            _swap(wake, "BLAMELESS", wake.BLAMELESS - {ended}),
            _swap(wake, "BROKEN", wake.BROKEN | {ended}),
        )
        yield Mutant("wake", f"{ended} is to blame", blamed, "people" if ended in SEEN_ENDS else None, WAKES)
    for cause in sorted(wake.BROKEN):
        trusted = _both(
            _swap(wake, "BLAMELESS", wake.BLAMELESS | {cause}),
            _swap(wake, "BROKEN", wake.BROKEN - {cause}),
        )
        yield Mutant("wake", f"{cause} is not to blame", trusted, "people" if cause in SEEN_ENDS else None, WAKES)
    for number, row in enumerate(wake.ROWS):
        left = wake.ROWS[:number] + wake.ROWS[number + 1 :]
        scenario = "people" if number in SEEN_ROWS else None
        yield Mutant("wake", f"{row.mode} ({number}) is dropped", _swap(wake, "ROWS", left), scenario, WAKES)


def _reaps() -> Iterator[Mutant]:
    """DESIGN 4.5: each row, dropped; and what counts as busy."""
    for number, rule in enumerate(reap.RULES):
        left = reap.RULES[:number] + reap.RULES[number + 1 :]
        row = f"{rule.kind} ({number}) is dropped"
        yield Mutant("reap", row, _swap(reap, "RULES", left), "people" if rule.kind in KEPT else None, REAPS)
    for said in reap.BUSY:
        left_ = {known: words for known, words in reap.BUSY.items() if known is not said}
        scenario = "people" if said in SAID_WHILE_BUSY else None
        yield Mutant("reap", f"{said} is not busy", _swap(reap, "BUSY", left_), scenario, REAPS)
