"""Which conditions of a session a human is told of, and until when."""

from __future__ import annotations

import pytest

from tests.unit.builders import ALWAYS, SITUATIONS, fleet, running, saturated
from tests.unit.incidents import come_back, die, only_incident, open_keys, relaunched, told
from vigil.core.model.death import Cause
from vigil.core.model.incident import IncidentKind, Severity


def test_stops_are_no_incident_however_many() -> None:
    stage, sessions = fleet(10)

    for session_id in sessions:
        stage.ask("stop", session_id)
        die(stage, session_id, signal=15)

    assert {death.cause for death in stage.deaths} == {Cause.OPERATOR}
    assert stage.incidents == {}


def test_ends_that_cost_nothing_are_no_incident_however_many() -> None:
    stage, sessions = fleet(10)

    for session_id in sessions:
        die(stage, session_id, exit_code=0)

    assert stage.incidents == {}


def test_a_saturated_session_is_an_urgent_incident() -> None:
    stage = saturated()

    incident = only_incident(stage)

    assert (incident.kind, incident.severity) == (IncidentKind.SATURATED, Severity.URGENT)
    assert (incident.session_id, incident.session, incident.why) == ("s1", "alpha", stage.session().why)


@pytest.mark.parametrize("verb", ["reset", "start", "stop", "rm"])
def test_a_saturated_session_is_no_incident_any_more_when_somebody_acted(verb: str) -> None:
    stage = saturated()
    before = only_incident(stage)

    stage.ask(verb)

    assert open_keys(stage) == []
    assert stage.incidents[before.id].resolved_at == stage.now


def test_a_server_that_died_is_an_incident_until_its_session_is_up_again() -> None:
    stage = running(ALWAYS)

    asked = die(stage, "s1", server_ended=True, server_signal=9)
    assert [incident.key for incident in told(asked)] == ["s1/server-died"]
    come_back(stage)

    assert stage.state() == "running"
    assert open_keys(stage) == []
    assert stage.log.count("incident.opened") == stage.log.count("incident.resolved") == 1


def test_a_server_that_died_under_never_is_an_incident_until_somebody_starts_it() -> None:
    stage = running()
    die(stage, "s1", server_ended=True, server_signal=9)
    assert (stage.state(), open_keys(stage)) == ("failed", ["s1/server-died"])

    stage.ask("start")
    relaunched(stage)

    assert open_keys(stage) == []


def test_a_session_that_could_not_be_ended_is_an_incident_until_it_is_gone() -> None:
    stage = SITUATIONS["stuck"]()
    assert open_keys(stage) == ["s1/stuck"]

    stage.exit(signal=9)
    stage.end()

    assert stage.state() == "stopped"
    assert open_keys(stage) == []


def test_what_is_removed_takes_its_incidents_with_it_and_says_so() -> None:
    stage = running()
    stage.hear("waiting-human")
    before = only_incident(stage)

    stage.ask("rm")
    stage.exit(signal=15)
    asked = stage.end()

    (incident,) = told(asked)
    assert (incident.id, incident.resolution, incident.hushed) == (before.id, "alpha was removed", True)
    assert incident.resolved_at == stage.now
    assert (stage.state(), open_keys(stage)) == ("removed", [])


def test_what_is_removed_takes_no_incident_of_another_with_it() -> None:
    stage, sessions = fleet(2)
    for session_id in sessions:
        stage.hear("waiting-human", session_id)

    stage.ask("rm", "s1")
    die(stage, "s1", signal=15)
    stage.end()

    assert open_keys(stage) == ["s2/needs-input"]
