"""One word of health for every state."""

from __future__ import annotations

from itertools import product

import pytest

from tests.unit.builders import make_reading, make_session
from vigil.core.model.death import Confidence
from vigil.core.model.reading import Axis
from vigil.core.model.session import Pulse, PulseState, State
from vigil.core.model.stall import Stall
from vigil.core.rules.health import HEALTH, health_of

WORDS = {"ok", "suspect", "stalled", "needs-input", "throttled", "unhealthy", "dead", "unknown"}  # INTERFACE
VALUES = (None, "alive", "dead", "stopped", "wedged", "unknown", "failed")


def test_every_state_has_a_health_that_the_interface_names() -> None:
    assert set(HEALTH) == set(State)
    assert set(HEALTH.values()) <= WORDS


def test_every_combination_of_readings_has_a_health() -> None:
    for state, process, server in product(State, VALUES, VALUES):
        axes = {
            axis: make_reading(value) for axis, value in ((Axis.PROCESS, process), (Axis.SERVER, server)) if value is not None
        }
        assert health_of(make_session(state, axes=axes)) in WORDS


@pytest.mark.parametrize(
    ("axes", "health"),
    [
        ({}, "ok"),
        ({Axis.PROCESS: "alive", Axis.SERVER: "alive"}, "ok"),
        ({Axis.PROCESS: "stopped"}, "stalled"),
        ({Axis.SERVER: "wedged"}, "suspect"),
        ({Axis.PROCESS: "stopped", Axis.SERVER: "wedged"}, "stalled"),
    ],
)
def test_a_running_session_is_as_well_as_its_axes(axes: dict[Axis, str], health: str) -> None:
    session = make_session(State.RUNNING, axes={axis: make_reading(value) for axis, value in axes.items()})

    assert health_of(session) == health


@pytest.mark.parametrize("state", sorted(set(State) - {State.RUNNING}))
def test_readings_of_what_does_not_run_change_nothing(state: State) -> None:
    axes = {Axis.PROCESS: make_reading("stopped"), Axis.SERVER: make_reading("wedged")}

    assert health_of(make_session(state, axes=axes)) == HEALTH[state]


def test_what_died_and_was_not_meant_to_is_dead() -> None:
    assert {state for state in State if HEALTH[state] == "dead"} == {State.CRASHED, State.FAILED}


@pytest.mark.parametrize(
    ("state", "health"),
    [
        (State.PENDING, "unknown"),
        (State.STARTING, "unknown"),
        (State.RUNNING, "ok"),
        (State.SUSPECT, "suspect"),
        (State.STUCK, "unhealthy"),
        (State.ENDING, "unknown"),
        (State.CRASHED, "dead"),
        (State.PARKED, "unknown"),
        (State.STOPPED, "unknown"),
        (State.FAILED, "dead"),
        (State.SUCCEEDED, "unknown"),
    ],
)
def test_a_state_has_its_word(state: State, health: str) -> None:
    assert health_of(make_session(state)) == health


@pytest.mark.parametrize("state", State)
def test_a_warned_stall_is_shown_while_its_agent_lives_undoubted(state: State) -> None:
    stall = Stall("upstream-stall", Confidence.LIKELY, ("no byte",), 1000.0, 1000.0, warned_at=1000.0)

    found = health_of(make_session(state, stall=stall))

    assert (found == "stalled") == (state in (State.STARTING, State.RUNNING))


@pytest.mark.parametrize(
    ("pulse", "health"), [(PulseState.HEALTHY, "ok"), (PulseState.LATE, "suspect"), (PulseState.UNHEALTHY, "unhealthy")]
)
def test_missing_signs_of_life_are_shown(pulse: PulseState, health: str) -> None:
    assert health_of(make_session(pulse=Pulse(pulse, 1000.0))) == health


@pytest.mark.parametrize(
    ("activity", "health"), [("working", "ok"), ("waiting-human", "needs-input"), ("throttled", "throttled")]
)
def test_a_session_that_waits_for_somebody_says_for_whom(activity: str, health: str) -> None:
    assert health_of(make_session(axes={Axis.ACTIVITY: make_reading(activity)})) == health
