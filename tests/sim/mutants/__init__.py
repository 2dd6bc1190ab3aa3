"""Mutants: every row of every decision table of the core, dropped or turned into its opposite. The promises must notice.

A check that cannot fail says nothing; so each mutant is lived with until a promise breaks. What no world can tell from the
original yet is listed with its reason: rows for causes and conditions that nothing produces so far.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant
from tests.sim.mutants.death import _charges, _deaths
from tests.sim.mutants.event import _handlers, of_silence
from tests.sim.mutants.hunt import SEEDS, breaks_anyway, hunt
from tests.sim.mutants.incident import _incidents, _notices
from tests.sim.mutants.life import _cells, _patience
from tests.sim.mutants.sleep import _reaps, _wakes
from tests.sim.mutants.team import _shifts, _teams
from tests.sim.mutants.word import _words

__all__ = ["SEEDS", "Mutant", "breaks_anyway", "hunt", "mutants", "of_silence"]


def mutants() -> Iterator[Mutant]:
    """Yield all of them, table by table."""
    yield from _cells()
    yield from _patience()
    yield from _deaths()
    yield from _charges()
    yield from _incidents()
    yield from _notices()
    yield from _handlers()
    yield from _teams()
    yield from _shifts()
    yield from _words()
    yield from _wakes()
    yield from _reaps()
