"""One seed: live through it, and say what it was; a failure is had again, with as few faults as it needs, and told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.sim.promises import Broken
from tests.sim.scenarios import Fault, Plan
from tests.sim.story import tell
from tests.sim.world import Tally, World


@dataclass(frozen=True)
class Outcome:
    """What became of one plan."""

    plan: Plan
    tally: Tally
    broken: str = ""  # the promise that broke, or the error that was raised
    words: str = ""
    at: float = 0.0

    @property
    def command(self) -> str:
        """What has it again."""
        return f"python -m tests.sim --seed {self.plan.seed} --scenario {self.plan.scenario}"


def live_through(plan: Plan, at_most: int | None = None) -> Outcome:
    """Live through a plan and return what became of it."""
    return _live(World(plan), at_most)


def _live(world: World, at_most: int | None = None) -> Outcome:
    try:
        world.live(at_most)
    except Broken as error:
        return Outcome(world.plan, world.tally, error.promise, str(error), world.engine.now)
    except Exception as error:  # the core must not raise, whatever the world does
        return Outcome(world.plan, world.tally, type(error).__name__, f"{type(error).__name__}: {error}", world.engine.now)
    return Outcome(world.plan, world.tally)


def shrink(outcome: Outcome) -> Outcome:
    """Return the same failure with as few faults as it needs: first halves are left out, then quarters, then single ones."""
    best = _again(outcome, [fault for fault in outcome.plan.faults if fault.at <= outcome.at]) or outcome
    size = max(1, len(best.plan.faults) // 2)
    while size:
        start = 0
        while start < len(best.plan.faults):
            left = best.plan.faults[:start] + best.plan.faults[start + size :]
            found = _again(best, left)
            if found is None:
                start += size
            else:
                best = found
        size //= 2
    return best


def _again(outcome: Outcome, faults: Sequence[Fault]) -> Outcome | None:
    found = live_through(replace(outcome.plan, faults=tuple(faults)))
    return found if found.broken == outcome.broken else None


def tell_story(outcome: Outcome, everything: bool = False, at_most: int | None = None) -> list[str]:
    """Return what happened in a world, line by line: all of it, or what concerns the session a failure is about."""
    world = World(outcome.plan, story=True)
    words = _live(world, at_most).words
    return tell(world.story or (), None if everything else _subject(world, words))


def _subject(world: World, words: str) -> str | None:
    """Return the id of the session that a failure speaks of, by its id or its name."""
    if found := re.search(r"\bs\d+\b", words):
        return found.group()
    named = re.search(r"\bn\d+\b", words)
    newest = [s.id for s in world.store.sessions.values() if named is not None and s.name == named.group()]
    return newest[-1] if newest else None
