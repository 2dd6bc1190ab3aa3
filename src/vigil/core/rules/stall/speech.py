"""Facts from an agent's own words. Pure: each is true, false or unknown."""

from __future__ import annotations

from vigil.core.rules.activity import COMPACTION
from vigil.core.rules.stall.case import LIMBO_S, Silence, tools_wait_until, waits_until

CIRCLES = 200  # uses of the same tool in a row
COMPACTIONS = 10
NOT_FURTHER = 2.0  # times the patience with a sub-agent: words come, and none takes it further
FAR_S = 3600.0  # no thought takes an hour, whatever comes over its connection
FAR_TOO_LONG = 6.0  # times the liveness timeout, where that is longer


def said_lately(case: Silence) -> bool:
    return case.silent_s < case.patience_s


def quiet(case: Silence) -> bool:
    """Say whether no word came for as long as a plain turn may take."""
    return case.silent_s >= case.limits.stall_after_s


def far_too_long(case: Silence) -> bool:
    return case.silent_s >= max(FAR_S, FAR_TOO_LONG * case.limits.liveness_timeout_s)


def tries_again(case: Silence) -> bool:
    return case.doing.retries and case.now < waits_until(case.doing, case.silent_from)


def waits(case: Silence) -> bool:
    until = tools_wait_until(case.doing)
    if until is None and case.doing.waits:
        until = waits_until(case.doing, case.silent_from)
    return until is not None and case.now < until


def finished(case: Silence) -> bool:
    return case.runs_to_its_end and case.trail.result_at is not None and not case.doing.turn


def over_long(case: Silence) -> bool:
    return case.trail.result_at is not None and case.now - max(case.trail.result_at, case.trail.floor) >= min(
        LIMBO_S, case.limits.stall_after_s
    )


def circles(case: Silence) -> bool:
    trail = case.trail
    if trail.again == COMPACTION:
        return trail.times >= COMPACTIONS
    if trail.again and trail.times >= CIRCLES:
        return True
    still_s = case.now - max(trail.further_at, trail.floor)
    speaks_on = case.now - trail.understood_at < case.limits.stall_after_s  # unknown lines may lead anywhere
    return case.doing.turn and trail.spoke and speaks_on and still_s >= NOT_FURTHER * case.limits.subagent_timeout_s
