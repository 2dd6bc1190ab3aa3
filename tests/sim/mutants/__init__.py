"""Mutants: every row of every decision table of the core, dropped or turned into its opposite. Promises or tests must notice.

A check that cannot fail says nothing; so each mutant is lived with until a promise breaks. Where no world has what a row is
for, the mutant names the tests that hold it, and those are run against it. What nothing can notice is in `explained.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant
from tests.sim.mutants.death import _charges, _deaths
from tests.sim.mutants.event import _handlers
from tests.sim.mutants.explained import EXPLAINED
from tests.sim.mutants.hunt import SEEDS, Fate, Found, breaks_anyway, decide, hunt
from tests.sim.mutants.incident import _incidents, _notices
from tests.sim.mutants.keeper import _keepers
from tests.sim.mutants.life import _cells, _patience
from tests.sim.mutants.silence import _stalls
from tests.sim.mutants.sleep import _reaps, _wakes
from tests.sim.mutants.table import _tables
from tests.sim.mutants.team import _shifts, _teams
from tests.sim.mutants.word import _words

__all__ = ["EXPLAINED", "SEEDS", "Fate", "Found", "Mutant", "breaks_anyway", "decide", "hunt", "mutant_named", "mutants"]


def mutant_named(name: str) -> Mutant:
    """Return the mutant of this name."""
    return next(mutant for mutant in mutants() if mutant.name == name)


def mutants() -> Iterator[Mutant]:
    """Yield all of them, table by table."""
    yield from _cells()
    yield from _patience()
    yield from _deaths()
    yield from _charges()
    yield from _incidents()
    yield from _notices()
    yield from _handlers()
    yield from _keepers()
    yield from _teams()
    yield from _shifts()
    yield from _words()
    yield from _wakes()
    yield from _reaps()
    yield from _stalls()
    yield from _tables()
