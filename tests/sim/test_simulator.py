"""Simulated worlds: a fixed set of seeds, and what the simulator promises of itself."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tests.sim.faults import FAULTS
from tests.sim.mutants import Mutant, breaks_anyway, hunt, mutant_named, mutants
from tests.sim.run import live_through, shrink, tell_story
from tests.sim.scenarios import SCENARIOS, draw_plan
from tests.sim.totals import Totals

SEEDS_OF_EACH = 2


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_promise_holds_on_every_kind_of_bad_day(scenario: str) -> None:
    totals = Totals()
    for seed in range(SEEDS_OF_EACH):
        totals.add(live_through(draw_plan(seed, scenario)))

    assert totals.failures == []
    assert totals.faults >= totals.session_days * 24, "at least one fault for each session and hour"


def test_the_same_seed_is_the_same_world_in_any_process() -> None:
    command = [sys.executable, "-m", "tests.sim", "--seed", "7", "--steps", "9000", "--all"]
    stories = [
        subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": "src:."})
        for seed in ("1", "2")
    ]

    first, second = (story.stdout.splitlines()[:-1] for story in stories)  # the last line has a rate, which is its own
    assert len(first) > 1000
    assert first == second


def test_every_fault_strikes() -> None:
    struck: set[str] = set()
    for seed in range(4 * len(SCENARIOS)):  # some are rare
        struck |= live_through(draw_plan(seed)).tally.struck.keys()
        if struck == FAULTS.keys():
            break

    assert struck == FAULTS.keys()


def test_a_failure_is_shrunk_to_what_it_needs_and_told() -> None:
    mutant = mutant_named("verbs: stop does nothing")
    with mutant.change():
        failure = live_through(draw_plan(0, "people"))
        small = shrink(failure)
        story = tell_story(small)

    assert failure.broken
    assert small.broken == failure.broken
    assert len(small.plan.faults) <= 3
    assert any("Asked stop" in line for line in story)
    assert "--seed 0 --scenario people" in small.command


def test_what_breaks_anyway_says_nothing_of_a_mutant() -> None:
    breaks_anyway.cache_clear()
    with mutant_named("verbs: stop does nothing").change():
        found = hunt(Mutant("none", "nothing is changed", nullcontext, "people"), seeds=1)
    breaks_anyway.cache_clear()

    assert found is None


def test_a_world_that_nothing_befalls_is_calm() -> None:
    plan = draw_plan(1, "everything")

    outcome = live_through(replace(plan, faults=()))

    assert outcome.broken == ""
    assert outcome.tally.faults == 0


def test_the_last_line_tells_rate_events_and_faults() -> None:
    command = [sys.executable, "-m", "tests.sim", "--seeds", "0-4", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    last = done.stdout.replace("\r", "\n").splitlines()[-1]
    assert last.startswith("4 seeds, 20 session-days, ")
    assert "a minute" in last and "events" in last and "faults" in last and last.endswith("0 failed")


@pytest.mark.parametrize("seeds", ["5", "x-y", "9-3", ""])
def test_seeds_that_are_no_range_are_refused_with_a_line(seeds: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.sim", f"--seeds={seeds}"], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "is not of the form A-B" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "liveness: alive/dead is live",
        "liveness: failed/failed is dead",
        "verdicts: stuck is live",
        "patience: wedged is hasty",
        "doubts: UNREADABLE is blind",
        "causes: oom (2) is dropped",
        "causes: server-died (3) is dropped",
        "how sure: unknown (1) is dropped",
        "charges: crash is free",
        "charges: limit is charged",
        "comes back: never after crash is yes",
        "charges: stalled is free",
        "incidents: stuck is dropped",
        "incidents: auth is dropped",
        "severity: needs-input is warning",
        "ladder: nobody is reminded",
        "quiet: everything passes",
        "folding: a storm is a hundred notices",
        "events: Acked is not heard",
        "events: Exited is not heard",
        "verbs: rm does nothing",
        "reset: auth goes on",
        "timers: hold does nothing",
        "timers: steady of a role does nothing",
        "charging: an event lasts 0 s",
        "phases: draining is for ever",
        "kept: stopped is replaced",
        "intents: policy spares nobody",
        "words: asked is a sign of life",
    ],
)
def test_a_changed_row_is_noticed(name: str) -> None:
    assert hunt(mutant_named(name)) is not None


def test_every_mutant_changes_a_row_that_is_there() -> None:
    for mutant in mutants():
        with mutant.change():
            pass
