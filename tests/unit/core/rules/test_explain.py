"""`vigil why` has an answer for every session there can be, from what is recorded of it."""

from __future__ import annotations

from itertools import product

import pytest

from tests.unit.builders import (
    ALWAYS,
    NEVER,
    ON_FAILURE,
    SITUATIONS,
    make_death,
    make_intent,
    make_reading,
    make_session,
    make_spec,
)
from vigil.core.model.death import Cause, Confidence, EvidenceLine
from vigil.core.model.reading import Axis, AxisValue, Reading
from vigil.core.model.restart import Hold, HoldReason, RestartPolicy
from vigil.core.model.session import ALIVE, State
from vigil.core.rules.explain import explain

HOLDS = (
    None,
    Hold(HoldReason.BACKOFF, 1200.0),
    Hold(HoldReason.SATURATED, None),
    Hold(HoldReason.SURVIVOR, None),
    Hold(HoldReason.PACE, None),
    Hold(HoldReason.LIMIT, None),
)


def test_every_session_there_can_be_is_explained() -> None:
    readings = (None, make_reading("alive"), make_reading("dead", conclusive=False), make_reading("wedged", why="no answer"))
    deaths = (None, make_death(Cause.UNOBSERVED, exit_code=None), make_death(intent=make_intent(), signal=9))
    for state, hold, reading, death, policy in product(State, HOLDS, readings, deaths, (ALWAYS, ON_FAILURE, NEVER)):
        axes = {} if reading is None else dict.fromkeys(Axis, reading)
        session = make_session(state, hold=hold, axes=axes, last_death=death, intent=make_intent(), spec=make_spec(policy))

        found = explain(session)

        assert found.verdict, session
        assert found.confidence in ("certain", "likely", "unknown"), session
        assert found.reasons, session
        assert found.next, session


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_situation_says_what_comes_next(situation: str) -> None:
    session = SITUATIONS[situation]().session()

    found = explain(session)

    assert session.why in found.reasons
    assert all(step.what for step in found.next)
    if session.hold is not None and session.hold.until is not None:
        assert found.next[0].at == session.hold.until
        assert found.next[0].what == "is launched again"


def test_the_verdict_of_what_is_over_is_its_cause_and_of_what_lives_its_state() -> None:
    for state in State:
        found = explain(make_session(state, last_death=make_death(Cause.OOM)))
        of_death = state not in (*ALIVE, State.STOPPED, State.PARKED)  # what somebody ended is as they left it
        assert found.verdict == ("oom" if of_death else state.value)


def test_the_reasons_are_the_evidence_each_once() -> None:
    line = EvidenceLine("pidfd", "the agent exited with 1")
    session = make_session(State.FAILED, why="crash", last_death=make_death(evidence=(line, line)))

    assert explain(session).reasons == ("crash", "the agent exited with 1 (pidfd)")


def test_the_evidence_shows_every_axis_with_its_source_and_age() -> None:
    axes = {
        Axis.PROCESS: make_reading("alive", observed_at=1234.0),
        Axis.SERVER: Reading(AxisValue.WEDGED, "ping", False, 1235.0, 1230.0, "no answer in 1 s"),
    }

    found = {proof.fact: (proof.value, proof.source, proof.at) for proof in explain(make_session(axes=axes)).evidence}

    assert found == {
        "process": ("alive", "pidfd, conclusive", 1234.0),
        "server": ("wedged (no answer in 1 s)", "ping", 1235.0),
    }


def test_a_death_and_an_intent_are_evidence_too() -> None:
    session = make_session(State.STOPPED, last_death=make_death(signal=9, exit_code=None), intent=make_intent())

    found = {proof.fact: proof.value for proof in explain(session).evidence}

    assert found["intent"] == "stop by alice"
    assert found["last death"] == "crash (signal 9); vigil death d-s1-1 tells all of it"


@pytest.mark.parametrize(
    ("state", "process", "sure", "confidence"),
    [
        (State.RUNNING, make_reading("alive"), None, "certain"),
        (State.RUNNING, make_reading("alive", conclusive=False), None, "likely"),
        (State.RUNNING, None, None, "likely"),
        (State.FAILED, None, Confidence.UNKNOWN, "unknown"),
        (State.FAILED, None, Confidence.LIKELY, "likely"),
        (State.FAILED, None, Confidence.CERTAIN, "certain"),
    ],
)
def test_it_is_as_sure_as_its_facts(state: State, process: Reading | None, sure: Confidence | None, confidence: str) -> None:
    axes = {} if process is None else {Axis.PROCESS: process}
    death = None if sure is None else make_death(confidence=sure)

    assert explain(make_session(state, axes=axes, last_death=death)).confidence == confidence


def test_it_says_what_was_ruled_out() -> None:
    alive, dead, wedged = make_reading("alive"), make_reading("dead"), make_reading("wedged")

    def ruled_out(**axes: Reading) -> str:
        return " ".join(explain(make_session(axes={Axis(name): value for name, value in axes.items()})).ruled_out)

    assert "this very process lives" in ruled_out(process=alive)
    assert "the two are observed apart" in ruled_out(process=dead, runtime=alive)
    assert "its process lives" in ruled_out(server=wedged)
    assert ruled_out(process=make_reading("alive", conclusive=False)) == ""
    assert "no intent was recorded" in " ".join(explain(make_session(State.FAILED, last_death=make_death())).ruled_out)
    assert explain(make_session(State.STOPPED, last_death=make_death(intent=make_intent()))).ruled_out == ()


@pytest.mark.parametrize(
    ("policy", "words"), [(ALWAYS, "comes back"), (ON_FAILURE, "comes back"), (NEVER, "stays dead if it dies")]
)
def test_what_runs_says_what_its_death_would_mean(policy: RestartPolicy, words: str) -> None:
    assert words in explain(make_session(spec=make_spec(policy))).next[0].what


@pytest.mark.parametrize("state", [State.STOPPED, State.FAILED, State.SUCCEEDED])
def test_what_is_over_names_the_command_that_starts_it(state: State) -> None:
    assert "vigil start alpha" in explain(make_session(state)).next[0].what


def test_a_hold_without_an_end_says_what_it_waits_for() -> None:
    def words(reason: str) -> str:
        return explain(make_session(State.PENDING, hold=Hold(HoldReason(reason), None))).next[0].what

    assert "vigil reset" in words("saturated")
    assert "verified gone" in words("survivor")
    assert "its turn" in words("pace")
