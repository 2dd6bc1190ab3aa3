"""The simulator by hand: one seed with its story, many seeds, hours of new ones, or all mutants."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import count
from random import SystemRandom

from tests.sim.mutants import Fate, Found, decide, mutant_named, mutants
from tests.sim.run import Outcome, live_through, shrink, tell_story
from tests.sim.scenarios import SCENARIOS, draw_plan
from tests.sim.totals import Totals

CHUNK = 8  # seeds a worker takes at once
SHOWN = 60  # lines of a story, the last ones


def main() -> int:
    """Do what was asked for; 1 if a promise broke or a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="live through this one; a failure is shrunk and its story told")
    parser.add_argument("--scenario", choices=SCENARIOS, help="the kind of bad day; without it each seed chooses one")
    parser.add_argument("--steps", type=int, help="stop after so many moments of the one seed, and tell its story so far")
    parser.add_argument("--all", action="store_true", help="tell the whole story, of every session")
    parser.add_argument("--seeds", metavar="A-B", type=_seeds, help="live through all of these, B not included")
    parser.add_argument("--hours", type=float, help="live through new seeds for so many hours")
    parser.add_argument("--mutants", action="store_true", help="change every row of every decision table; each must be noticed")
    parser.add_argument("--only", metavar="TABLE", default="", help="only mutants of tables with this in their name")
    parser.add_argument("--quick", action="store_true", help="two worlds for each mutant, then its tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    asked = parser.parse_args()
    if asked.mutants:
        return _hunt_all(asked.only, asked.quick, asked.jobs)
    if asked.seed is not None:
        return _one(asked.seed, asked.scenario, asked.steps, asked.all)
    if asked.seeds is not None:
        return _many(iter(asked.seeds), asked.scenario, asked.jobs)
    if asked.hours is not None:
        return _many(count(SystemRandom().randrange(10**9, 10**12)), asked.scenario, asked.jobs, asked.hours * 3600)
    parser.print_help()
    return 2


def _seeds(text: str) -> range:
    """Return the seeds from A up to B."""
    first, dash, last = text.partition("-")
    if not dash or not first.isdigit() or not last.isdigit() or int(first) >= int(last):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form A-B, such as 0-1000")
    return range(int(first), int(last))


def _one(seed: int, scenario: str | None, steps: int | None, everything: bool) -> int:
    totals = Totals()
    outcome = live_through(draw_plan(seed, scenario), steps)
    totals.add(outcome)
    if outcome.broken:
        print(f"{outcome.words}\nshrinking …", flush=True)
        outcome = shrink(outcome)
        _print_faults(outcome)
    if outcome.broken or steps is not None:
        lines = tell_story(outcome, everything, steps)
        print("\n".join(lines if everything else lines[-SHOWN:]))
    if outcome.broken:
        print(f"{outcome.words}\nwith {len(outcome.plan.faults)} faults; again: {outcome.command}")
    print(totals.line())
    return 1 if outcome.broken else 0


def _print_faults(outcome: Outcome) -> None:
    for fault in outcome.plan.faults:
        print(f"  {fault.at:9.1f} s  {fault.kind}, size {fault.size:.2f}")


def _many(seeds: Iterator[int], scenario: str | None, jobs: int, for_s: float | None = None) -> int:
    """Live through seeds, a few processes at once; stop at the first failure."""
    totals, begun = Totals(), time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        running: set[Future[Totals]] = set()
        while True:
            in_time = for_s is None or time.monotonic() - begun < for_s
            while in_time and len(running) < jobs + 1 and (chunk := _take(seeds)):
                running.add(pool.submit(_live_through_all, chunk, scenario))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                totals += future.result()
            print(f"\r{totals.line()}", end="", flush=True)
            if totals.failures:
                pool.shutdown(cancel_futures=True)
                break
    print(f"\r{totals.line()}")
    for failure in totals.failures:
        print(failure, file=sys.stderr)
    return 1 if totals.failures else 0


def _take(seeds: Iterator[int]) -> list[int]:
    return [seed for _, seed in zip(range(CHUNK), seeds, strict=False)]


def _live_through_all(seeds: Iterable[int], scenario: str | None) -> Totals:
    totals = Totals()
    for seed in seeds:
        totals.add(live_through(draw_plan(seed, scenario)))
    return totals


def _hunt_all(only: str, quick: bool, jobs: int) -> int:
    """Say what became of every mutant; 1 if one survived."""
    names = [mutant.name for mutant in mutants() if only in mutant.table]
    fates = Counter[Fate]()
    with ProcessPoolExecutor(jobs) as pool:
        for name, found in zip(names, pool.map(partial(_decide, quick=quick), names), strict=True):
            fates[found.fate] += 1
            if found.fate is Fate.SURVIVED:
                print(f"\rsurvived: {name}  {found.words}")
            said = ", ".join(f"{fates[fate]} {fate}" for fate in Fate)
            print(f"\r{fates.total()} of {len(names)} mutants: {said}", end="", flush=True)
    print()
    return 1 if fates[Fate.SURVIVED] or not names else 0


def _decide(name: str, quick: bool) -> Found:
    return decide(mutant_named(name), quick)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nstopped")
