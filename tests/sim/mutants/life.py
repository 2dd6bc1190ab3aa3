"""Mutants of life and doubt: the liveness table, its patience, and which doubt a cell is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.sim.mutants.change import Mutant, _handled, _rules, _set, _swap
from vigil.core.handlers import doubt
from vigil.core.model.reading import DoubtKind
from vigil.core.rules import liveness
from vigil.core.rules.liveness import Cell, DoubtPatience, LifeVerdict

CELLS = ("unit/core/rules/test_liveness.py::test_the_table_is_the_one_of_the_design",)
TESTS = (*_rules("liveness"), *_handled("doubt", "observation"))


def _cells() -> Iterator[Mutant]:
    """DESIGN 4.2: each cell as if all were well, and as if it were dead."""
    for (runtime, process), cell in liveness.TABLE.items():
        for instead in sorted({Cell.LIVE, Cell.DEAD} - {cell}):
            row = f"{runtime}/{process} is {instead.name.lower()}"
            yield Mutant("liveness", row, _set(liveness.TABLE, (runtime, process), instead), "confused", CELLS)
    for verdict in LifeVerdict:
        if verdict is not LifeVerdict.LIVE:
            yield Mutant("verdicts", f"{verdict} is live", _set(doubt.VERDICTS, verdict, doubt.live), "confused", TESTS)


def _patience() -> Iterator[Mutant]:
    for kind, patience in liveness.PATIENCE.items():
        hasty = DoubtPatience(0.0, 1, 1.0, samples=min(1, patience.samples))
        scenario = "tmux" if kind == "wedged" else "blind"
        yield Mutant("patience", f"{kind} is hasty", _set(liveness.PATIENCE, kind, hasty), scenario, TESTS)
        if kind in (DoubtKind.WEDGED, DoubtKind.UNREADABLE, DoubtKind.ORACLE):
            endless = replace(patience, stuck_attempts=liveness.NEVER)
            yield Mutant("patience", f"{kind} is endless", _set(liveness.PATIENCE, kind, endless), "confused", TESTS)
    for kind in sorted(doubt.UNMOVED):
        moved = doubt.UNMOVED - {kind}
        yield Mutant("doubts", f"a word ends {kind}", _swap(doubt, "UNMOVED", moved), "tmux", TESTS)
    for cell in (Cell.BLIND, Cell.PANE, Cell.CONFIRM, Cell.ORPHANED):
        instead = DoubtKind.UNREADABLE
        yield Mutant("doubts", f"{cell.name} is {instead}", _set(liveness.DOUBT_OF, cell, instead), "confused", TESTS)
    for cell in (Cell.UNREADABLE, Cell.ORACLE):
        yield Mutant("doubts", f"{cell.name} is blind", _set(liveness.DOUBT_OF, cell, DoubtKind.BLIND), "confused", TESTS)
