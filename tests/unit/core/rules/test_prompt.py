"""A prompt is typed only where a composer can take it; every other sight refuses, and says why."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from vigil.core.model.session import State
from vigil.core.rules.prompt import REFUSALS, ComposerSight, why_not
from vigil.daemon.serve.prompts import stands_in

FIT = ComposerSight(State.RUNNING, composer=True)
UNFIT: list[tuple[dict[str, Any], str, bool]] = [
    ({"state": State.STARTING}, "it is starting", True),
    ({"state": State.CRASHED}, "it is crashed", False),
    ({"state": State.STOPPED}, "it is stopped", False),
    ({"headless": True}, "headless", False),
    ({"process": "stopped"}, "SIGSTOP", False),
    ({"process": "dead"}, "has ended", False),
    ({"process": "unknown"}, "cannot be read", False),
    ({"server": "wedged"}, "does not answer", True),
    ({"pane_read": False}, "does not answer", True),
    ({"pane_dead": True}, "dead", False),
    ({"in_mode": True}, "copy mode", True),
    ({"foreground": "other"}, "a shell has its terminal", False),
    ({"foreground": "unknown"}, "cannot be told", False),
    ({"dialog": "trust"}, "dialog (trust)", False),
    ({"asked": "Bash"}, "waits for a person: Bash", False),
    ({"screen_read": False}, "screen cannot be read", True),
    ({"composer": False}, "no composer", True),
    ({"draft": True}, "begun to type", True),
]


def test_what_can_take_it_gets_it() -> None:
    assert why_not(FIT) is None
    assert why_not(replace(FIT, composer=None)) is None, "a kind that shows no composer is typed into"


@pytest.mark.parametrize(("unfit", "words", "passes"), UNFIT)
def test_each_thing_that_is_not_fit_refuses_and_says_so(unfit: dict[str, Any], words: str, passes: bool) -> None:
    sight = replace(FIT, **unfit)

    row = why_not(sight)

    assert row is not None
    assert words in row.why(sight)
    assert row.passes is passes


def test_every_row_is_tried() -> None:
    found = {why_not(replace(FIT, **unfit)) for unfit, _, _ in UNFIT}

    assert found == set(REFUSALS)


def test_nothing_is_typed_while_anything_is_not_fit() -> None:
    for (one, _, _), (other, _, _) in product(UNFIT, UNFIT):
        assert why_not(replace(FIT, **(one | other))) is not None


@pytest.mark.parametrize("state", [state for state in State if state not in (State.RUNNING, State.STARTING)])
def test_only_what_runs_is_typed_into(state: State) -> None:
    row = why_not(replace(FIT, state=state))

    assert row is not None
    assert not row.passes


@pytest.mark.parametrize(
    ("line", "prompt", "stands"),
    [
        ("fix the tests", "fix the tests", True),
        ("> fix the tests  ", "fix the tests\n", True),
        ("and then", "fix the tests\nand then", True),
        ("", "fix the tests", False),
        ("> ", "fix the tests", False),
        ("fix the tests, please", "fix the tests", False),
        ("anything", "", False),
    ],
)
def test_a_prompt_stands_in_a_line_that_ends_with_it(line: str, prompt: str, stands: bool) -> None:
    assert stands_in(line, prompt) is stands
