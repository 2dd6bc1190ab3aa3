"""The hunt: a mutant is lived with until a promise breaks."""

from __future__ import annotations

from functools import cache

from tests.sim.mutants.change import Mutant
from tests.sim.run import Outcome, live_through
from tests.sim.scenarios import draw_plan

SEEDS = 60  # a mutant that none of them notices has survived


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
