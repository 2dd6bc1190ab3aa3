"""The wake table (DESIGN 4.6): every combination has one answer, and it is the documented one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from vigil.core.model.death import Cause
from vigil.core.model.launch import Mode
from vigil.core.model.restart import HoldReason
from vigil.core.rules.wake import (
    BLAMELESS,
    BROKEN,
    INTERRUPTED,
    NEVER,
    PARKED,
    UNBORN,
    Life,
    Resumability,
    WakeQuestion,
    decide,
)

HOLDS = (None, *HoldReason)
ENDINGS = frozenset({NEVER}) | BLAMELESS | BROKEN | UNBORN
LAST = ((Mode.FRESH, "first"), (Mode.FRESH, "crashed"), (Mode.RESUME, "parked"), (Mode.RESUME, "crashed"))


def cases() -> Iterator[WakeQuestion]:
    for asked, by_wake, life, hold in product((None, Mode.FRESH, Mode.RESUME), (False, True), Life, HOLDS):
        for ended, found, resumes_crashed, (mode, cause) in product(ENDINGS, Resumability, (False, True), LAST):
            yield WakeQuestion(asked, by_wake, life, hold, ended, found, resumes_crashed, mode, cause)


def documented(case: WakeQuestion) -> tuple[Mode, str]:
    """Return what DESIGN 4.6 says, in its own order."""
    good = case.found is Resumability.RESUMABLE
    if case.life is Life.AWAKE:
        return Mode.NOTHING, "already awake"
    if case.by_wake and case.life is Life.STOPPED:
        return Mode.REFUSED, "stopped"
    if case.by_wake and case.hold in ("backoff", "saturated"):
        return Mode.REFUSED, "crash-loop"
    if case.by_wake and case.hold in ("limit", "auth"):
        return Mode.REFUSED, case.hold
    if case.asked is Mode.FRESH:
        return Mode.FRESH, "asked"
    if case.asked is Mode.RESUME:
        return (Mode.RESUME, "asked") if good else (Mode.REFUSED, case.found.value)
    if case.ended == NEVER:
        return Mode.FRESH, "first"
    if case.ended in (Cause.LAUNCH_FAILED, INTERRUPTED):
        if case.last_mode is Mode.RESUME:
            return (Mode.RESUME, case.last_cause) if good else (Mode.FRESH, case.found.value)
        return Mode.FRESH, case.last_cause
    if case.ended in (Cause.CRASH, Cause.EARLY_EXIT, Cause.UNOBSERVED):
        again = case.resumes_crashed and good and case.last_cause != "crashed"
        return (Mode.RESUME if again else Mode.FRESH), "crashed"
    if case.by_wake and case.found is Resumability.IN_USE:
        return Mode.REFUSED, "in-use"
    return (Mode.RESUME, case.ended) if good else (Mode.FRESH, case.found.value)


def test_every_combination_is_decided_as_documented() -> None:
    for case in cases():
        wake = decide(case)
        assert (wake.mode, wake.cause) == documented(case), case


def test_every_way_to_end_is_in_exactly_one_row_of_the_table() -> None:
    assert sorted([*BLAMELESS, *BROKEN, *UNBORN]) == sorted([*Cause, PARKED, INTERRUPTED])


def test_nothing_is_resumed_that_is_not_resumable() -> None:
    resumed = [case for case in cases() if decide(case).mode is Mode.RESUME]

    assert {case.found for case in resumed} == {Resumability.RESUMABLE}


@pytest.mark.parametrize("by_wake", [False, True])
def test_start_and_policy_are_never_refused_unless_a_resume_was_asked_for(by_wake: bool) -> None:
    refused = [case for case in cases() if case.by_wake is by_wake and decide(case).mode is Mode.REFUSED]

    assert all(case.by_wake or case.asked is Mode.RESUME for case in refused)
    assert bool([case for case in refused if case.asked is None]) is by_wake
