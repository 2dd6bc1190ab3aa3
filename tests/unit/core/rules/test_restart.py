"""The documented backoff is the real one, and every death passes through one charge (P4)."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.core.model.death import Cause
from vigil.core.model.restart import Hold, HoldReason, RestartPolicy, RestartWhen
from vigil.core.rules.restart import COMES_BACK, COUNTED, FREE, HELD, WALLS, charge, delay_s, jitter_of

# DESIGN 4.4, column "charged", word for word.
CHARGED = {
    "finished": False,
    "operator": False,
    "policy": False,
    "unhealthy": True,
    "stalled": True,
    "launch-failed": True,
    "early-exit": True,
    "crash": True,
    "oom": True,
    "server-died": True,
    "pane-closed": True,
    "killed-by-unknown": True,
    "unobserved": True,
    "host-rebooted": False,
    "limit": False,
    "auth": False,
}
POLICIES = st.builds(
    RestartPolicy,
    when=st.sampled_from(RestartWhen),
    max_restarts=st.integers(0, 10),
    base_s=st.floats(0.001, 1000),
    factor=st.floats(1, 10),
    cap_s=st.floats(0.001, 10_000),
    jitter=st.floats(0, 1),
    reset_after_s=st.floats(1, 10_000),
)
JITTERS = st.floats(-1, 1)


def test_every_cause_is_charged_in_exactly_one_way() -> None:
    assert sorted([*FREE, *COUNTED, *HELD]) == sorted(Cause)


def test_the_charge_is_the_designs() -> None:
    assert {cause.value: cause in COUNTED for cause in Cause} == CHARGED
    assert frozenset({Cause.LIMIT, Cause.AUTH}) == HELD == WALLS.keys()


def test_policies_mean_the_same_for_every_cause() -> None:
    never_back = {when: {cause for cause in Cause if cause not in COMES_BACK[when]} for when in RestartWhen}

    assert never_back == {
        RestartWhen.ALWAYS: set(),
        RestartWhen.ON_FAILURE: {Cause.FINISHED},
        RestartWhen.NEVER: set(Cause),
    }


def test_the_delays_of_the_default_policy_are_the_documented_ones() -> None:
    delays = [delay_s(count, RestartPolicy(), jitter=0) for count in range(1, 10)]

    assert delays == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_the_jitter_is_a_tenth_either_way() -> None:
    assert delay_s(1, RestartPolicy(), jitter=1) == pytest.approx(5.5)
    assert delay_s(1, RestartPolicy(), jitter=-1) == pytest.approx(4.5)


@pytest.mark.parametrize("count", [65, 66, 1024, 1025, 10**6, 10**18])
def test_a_session_that_died_any_number_of_times_waits_the_cap(count: int) -> None:
    assert delay_s(count, RestartPolicy(), jitter=0) == 300


@given(st.integers(1, 10**9), POLICIES, JITTERS)
def test_a_delay_stays_within_its_jitter_of_the_documented_one(count: int, policy: RestartPolicy, jitter: float) -> None:
    documented = min(policy.cap_s, policy.base_s * policy.factor ** min(count - 1, 200))

    delay = delay_s(count, policy, jitter)

    if count <= 65:  # beyond that the exponent is clamped
        assert documented * (1 - policy.jitter) * 0.999999 <= delay <= documented * (1 + policy.jitter) * 1.000001
    assert 0 <= delay <= policy.cap_s * (1 + policy.jitter) * 1.000001


@given(st.integers(1, 200), POLICIES, JITTERS)
def test_one_more_death_never_waits_less(count: int, policy: RestartPolicy, jitter: float) -> None:
    assert delay_s(count + 1, policy, jitter) >= delay_s(count, policy, jitter)


@given(st.sampled_from(sorted(COUNTED)), st.integers(0, 50), POLICIES, JITTERS)
def test_a_charged_death_counts_one_and_waits_its_delay(cause: Cause, count: int, policy: RestartPolicy, jitter: float) -> None:
    new, hold = charge(cause, 1000.0, count, 0.0, policy, jitter)

    assert new == count + 1
    if policy.max_restarts and new > policy.max_restarts:
        assert hold == Hold(HoldReason.SATURATED, None)
    else:
        assert hold == Hold(HoldReason.BACKOFF, 1000.0 + delay_s(new, policy, jitter))


@pytest.mark.parametrize("cause", sorted(FREE))
def test_an_uncharged_death_costs_nothing_and_still_waits_the_base(cause: Cause) -> None:
    for count, jitter in product((0, 3, 99), (-1.0, 0.0, 1.0)):
        assert charge(cause, 1000.0, count, 0.0, RestartPolicy(max_restarts=3), jitter) == (
            count,
            Hold(HoldReason.BACKOFF, 1005.0),
        )


@pytest.mark.parametrize("cause", sorted(HELD))
def test_a_wall_holds_until_it_is_gone_and_costs_nothing(cause: Cause) -> None:
    policy = RestartPolicy(max_restarts=1)

    assert charge(cause, 1000.0, 1, 0.0, policy, 0.0, resets_at=5000.0) == (1, Hold(HoldReason(cause.value), 5000.0))
    assert charge(cause, 1000.0, 1, 0.0, policy, 0.0, resets_at=900.0) == (
        1,
        Hold(HoldReason(cause.value), 1005.0),
    )  # no tight loop


def test_without_a_moment_a_limit_is_tried_again_and_a_login_waits_for_a_person() -> None:
    assert charge(Cause.LIMIT, 1000.0, 1, 0.0, RestartPolicy(), 0.0) == (1, Hold(HoldReason.LIMIT, 4600.0))
    assert charge(Cause.AUTH, 1000.0, 1, 0.0, RestartPolicy(), 0.0) == (1, Hold(HoldReason.AUTH, None))


@pytest.mark.parametrize("allowed", [1, 2, 5])
def test_the_death_after_the_last_allowed_restart_waits_for_a_human(allowed: int) -> None:
    policy = RestartPolicy(max_restarts=allowed)

    count, holds = 0, []
    for _ in range(allowed + 1):
        count, hold = charge(Cause.CRASH, 1000.0, count, 0.0, policy, 0.0)
        holds.append(hold.reason)

    assert holds == ["backoff"] * allowed + ["saturated"]


def test_no_limit_never_saturates() -> None:
    _, hold = charge(Cause.CRASH, 1000.0, 10**9, 0.0, RestartPolicy(max_restarts=0), 0.0)

    assert hold == Hold(HoldReason.BACKOFF, 1300.0)


@given(st.sampled_from(Cause), st.integers(0, 99), POLICIES, JITTERS, st.floats(0, 1))
def test_the_count_starts_anew_after_a_stable_launch(
    cause: Cause, count: int, policy: RestartPolicy, jitter: float, fraction: float
) -> None:
    stable = charge(cause, 1000.0, count, policy.reset_after_s, policy, jitter)
    shaky, _ = charge(cause, 1000.0, count, policy.reset_after_s * fraction * 0.999, policy, jitter)

    assert stable == charge(cause, 1000.0, 0, 0.0, policy, jitter)
    assert shaky == count + (cause in COUNTED)


@given(st.text())
def test_a_launchs_jitter_is_its_own_and_between_its_bounds(launch_id: str) -> None:
    assert -1 <= jitter_of(launch_id) <= 1
    assert jitter_of(launch_id) == jitter_of(launch_id)


def test_sessions_that_die_together_come_back_apart() -> None:
    jitters = sorted(jitter_of(f"s{number:08x}-1") for number in range(500))

    assert len(set(jitters)) > 490
    assert jitters[0] < -0.9
    assert jitters[-1] > 0.9
