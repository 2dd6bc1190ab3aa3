"""Mutants of silence: each row of the verdicts on a silent agent, each fact that a row asks for, and each fact itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.sim.mutants.change import Mutant, _handled, _set, _swap
from vigil.core.rules.stall import facts, verdict
from vigil.core.rules.stall.case import Silence
from vigil.core.rules.stall.facts import StallFact
from vigil.core.rules.stall.verdict import VerdictRow

TESTS = ("unit/core/rules/stall/test_rows.py", "unit/core/rules/stall/test_verdict.py", *_handled("watchdog"))
PARTS = {"needs": "asks not for", "excludes": "is not excluded by", "doubts": "is not doubted for"}


def _stalls() -> Iterator[Mutant]:
    """DESIGN 5: why a silent agent says nothing."""
    for number, row in enumerate(verdict.ROWS):
        called = f"{row.verdict} ({number})"
        yield Mutant("silence", f"{called} is dropped", _instead(number), tests=TESTS)
        for part, words in PARTS.items():
            asked = getattr(row, part)
            for fact in asked:
                changed: dict[str, Any] = {part: tuple(other for other in asked if other != fact)}
                less = replace(row, **changed)
                yield Mutant("silence", f"{called} {words}: {fact}", _instead(number, less), tests=TESTS)
    for name, known in facts.FACTS.items():
        yield Mutant("facts", f"{name} is the opposite", _set(facts.FACTS, name, _opposite(known)), tests=TESTS)


def _instead(number: int, *rows: VerdictRow) -> Callable[[], object]:
    """Return a context in which one row is another, or is not there."""
    return _swap(verdict, "ROWS", (*verdict.ROWS[:number], *rows, *verdict.ROWS[number + 1 :]))


def _opposite(fact: StallFact) -> StallFact:
    def holds(case: Silence) -> bool | None:
        found = fact.holds(case)
        return None if found is None else not found

    return fact._replace(holds=holds)
