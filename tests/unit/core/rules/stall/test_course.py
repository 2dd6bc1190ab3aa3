"""A finding goes on from the one before while something is the matter, and is told once it was found often enough."""

from __future__ import annotations

import pytest

from tests.unit.core.rules.stall.test_verdict import CATALOGUE
from tests.unit.stalls import MIN, NOW, case
from vigil.core.model.death import Confidence
from vigil.core.model.stall import Stall
from vigil.core.rules.stall.course import continued, is_told, with_finding
from vigil.core.rules.stall.verdict import StallFinding, StallVerdict, classify

V = StallVerdict
HEALTHY = {V.WORKING, V.THINKING, V.TOOL_RUNNING, V.WAITING_HUMAN, V.WAITING_TIMER, V.THROTTLED}
SICK = set(StallVerdict) - HEALTHY - {V.SUPERVISOR_LATE}


def finding(verdict: StallVerdict) -> StallFinding:
    return StallFinding(verdict, Confidence.LIKELY, ("so it is",), 2, (), ())


def warned(verdict: StallVerdict, samples: int = 1) -> Stall:
    at = NOW - 5 * MIN
    return Stall(verdict, Confidence.LIKELY, ("so it was",), at, at, samples=samples, sampled_at=at, warned_at=at, warnings=1)


@pytest.mark.parametrize("verdict", StallVerdict)
def test_a_warning_stands_while_something_is_the_matter(verdict: StallVerdict) -> None:
    before = warned(V.UPSTREAM_STALL)

    after = continued(before, finding(verdict), case())

    assert (after.warned_at == before.warned_at) == (verdict not in HEALTHY)
    assert (after.verdict == verdict) == (verdict is not V.SUPERVISOR_LATE), "a void finding changes nothing"


@pytest.mark.parametrize("verdict", StallVerdict)
def test_a_finding_to_show_keeps_the_warning_of_what_is_still_the_matter(verdict: StallVerdict) -> None:
    assert with_finding(warned(verdict), finding(verdict), NOW).warned_at == (NOW - 5 * MIN if verdict in SICK else None)


@pytest.mark.parametrize("verdict", sorted(SICK))
def test_what_the_kernel_may_end_by_itself_is_told_only_when_found_again(verdict: StallVerdict) -> None:
    needed = {V.UNINTERRUPTIBLE: 3, V.LOST_RESULT: 2}.get(verdict, 1)

    told = [samples for samples in range(5) if is_told(case(silent_s=60 * MIN), warned(verdict, samples))]

    assert told == list(range(needed, 5))


def test_what_is_well_is_not_among_what_was_ruled_out() -> None:
    ruled_out = {line.partition(":")[0] for _, failure, *_ in CATALOGUE for line in classify(failure).ruled_out}

    assert ruled_out and ruled_out <= SICK
