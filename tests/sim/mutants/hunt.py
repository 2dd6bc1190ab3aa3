"""The hunt: a mutant is lived with until a promise breaks, or is tried by the tests that it names."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import NamedTuple

from tests.sim.mutants.change import Mutant
from tests.sim.mutants.explained import EXPLAINED
from tests.sim.mutants.trial import Unfit, noticed_by
from tests.sim.run import Outcome, live_through
from tests.sim.scenarios import draw_plan

SEEDS = 60  # a mutant that none of them notices has survived
SEEDS_BEFORE_TESTS = 12  # where tests hold the row as well
QUICK_SEEDS = 2


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    KILLED_BY_TEST = "killed by test"
    EXPLAINED = "explained"
    SURVIVED = "survived"


class Found(NamedTuple):
    """The fate of a mutant, and what noticed it, or why nothing can."""

    fate: Fate
    words: str = ""


def decide(mutant: Mutant, quick: bool = False) -> Found:
    """Return what became of a mutant; one that is killed though it is explained has survived its explanation."""
    reason = EXPLAINED.get(mutant.name)
    try:
        found = _noticed(mutant, quick or reason is not None)
    except Unfit as error:
        return Found(Fate.SURVIVED, str(error))
    if found is None:
        return Found(Fate.EXPLAINED, reason) if reason else Found(Fate.SURVIVED)
    return Found(Fate.SURVIVED, f"it is explained, and yet {found.words}") if reason else found


def _noticed(mutant: Mutant, quick: bool) -> Found | None:
    by_tests = bool(mutant.tests)
    if mutant.scenario is not None or not by_tests:
        outcome = hunt(mutant, QUICK_SEEDS if quick else SEEDS_BEFORE_TESTS if by_tests else SEEDS)
        if outcome is not None:
            return Found(Fate.KILLED, f"{outcome.words} ({outcome.command})")
    test = noticed_by(mutant)
    return None if test is None else Found(Fate.KILLED_BY_TEST, test)


def hunt(mutant: Mutant, seeds: int = SEEDS) -> Outcome | None:
    """Live with a mutant until a promise breaks that holds without it; None if it survives."""
    for seed in range(seeds):
        scenario = mutant.scenario if seed % 2 == 0 else None
        with mutant.change():
            outcome = live_through(draw_plan(seed, scenario))
        if outcome.broken and not breaks_anyway(seed, scenario):
            return outcome
    return None


@cache
def breaks_anyway(seed: int, scenario: str | None) -> bool:
    """Say whether a world breaks a promise as it is: what it says of a mutant then is nothing."""
    return bool(live_through(draw_plan(seed, scenario)).broken)
