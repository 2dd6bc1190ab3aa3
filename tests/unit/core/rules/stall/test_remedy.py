"""What may be done about a stalled agent: which remedies a verdict has, in which order, and what keeps from each (P2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.builders import make_doubt, make_session
from tests.unit.stalls import child
from vigil.core.model.death import Confidence
from vigil.core.model.session import State
from vigil.core.model.stall import Thresholds
from vigil.core.rules.stall.remedy import RemedySight, kept_by, next_step
from vigil.core.rules.stall.verdict import StallVerdict

V = StallVerdict
TURN = ["interrupt", "close-stdin", "end"]
REMEDIES: dict[StallVerdict, list[str]] = {
    V.BLOCKED_CHILD: ["end-child", *TURN],
    V.LEAKED_PIPE: ["end-child", *TURN],
    V.TOOL_OVERRUN: ["end-child", *TURN],
    V.WEDGED_AFTER_TOOL: TURN,
    V.LOST_RESULT: TURN,
    V.UPSTREAM_STALL: TURN,
    V.NETWORK_DEAD: TURN,
    V.RESUME_POISONED: TURN,
    V.SPINNING: TURN,
    V.START_BLOCKED: ["close-stdin", "end"],
    V.LIMBO: ["end"],
}
ON = Thresholds(stall_auto_kill=True)


def sight(**changes: Any) -> RemedySight:
    """Return a stall that may be treated, with what a test changes in it."""
    may = RemedySight(make_session(), V.LOST_RESULT, Confidence.LIKELY, 2, 2, ON.liveness_timeout_s, ON)
    return may._replace(**changes)


@pytest.mark.parametrize("verdict", StallVerdict)
def test_remedies_climb_from_the_cheapest_and_the_last_is_tried_again(verdict: StallVerdict) -> None:
    climbed: list[str] = []
    while (step := next_step(verdict, climbed[-1] if climbed else "", True, child())) is not None and step not in climbed:
        climbed.append(step)

    assert climbed == REMEDIES.get(verdict, [])


def test_what_does_not_apply_is_left_out() -> None:
    assert next_step(V.BLOCKED_CHILD, "", True, None) == "interrupt", "no process is known to hang"
    assert next_step(V.START_BLOCKED, "", False, None) == "end", "it reads no input"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"session": make_session(attached=1)}, "a person is attached"),
        ({"session": make_session(doubt=make_doubt())}, "its life is in doubt"),
        ({"session": make_session(State.SUSPECT)}, "it is suspect"),
        ({"session": make_session(State.STARTING)}, ""),
        ({"verdict": V.UNINTERRUPTIBLE}, "uninterruptible has no remedy"),
        ({"limits": Thresholds()}, "automatic remedies are off (stall_auto_kill)"),
        ({"confidence": Confidence.UNKNOWN}, "it is not sure enough"),
        ({"independent": 1}, "only 1 of 2 independent sensors speak for it"),
        ({"samples": 1}, "found so 1 of 2 times"),
        ({"silent_s": 599.0}, "it is silent for 599 of 600 s"),
        ({"silent_s": 599.0, "verdict": V.LIMBO}, ""),
    ],
)
def test_nothing_is_done_past_a_person_a_doubt_or_too_little_evidence(changes: dict[str, Any], why: str) -> None:
    assert kept_by(sight(**changes)) == why
