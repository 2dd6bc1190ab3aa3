"""Which conditions of a session a human is told of, and until when."""

from __future__ import annotations

import pytest

from tests.unit.builders import (
    ALWAYS,
    SITUATIONS,
    fleet,
    make_death,
    make_launch,
    make_reading,
    make_session,
    running,
    saturated,
)
from tests.unit.core.handlers import test_charge as charges
from tests.unit.core.handlers import test_watchdog as watching
from tests.unit.incidents import come_back, die, hang, only_incident, open_keys, relaunched, told
from vigil.core.model.conversation import Message
from vigil.core.model.death import Cause, Confidence
from vigil.core.model.incident import IncidentKind, Severity
from vigil.core.model.launch import ForeignSession
from vigil.core.model.reading import Axis
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State
from vigil.core.model.stall import Stall
from vigil.core.rules.incident import RULES, IncidentRule, conditions_of, incident_of, is_hit, is_past, is_wedged
from vigil.core.rules.stall.verdict import StallVerdict


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


# Once for each event, from what it changed


def test_an_event_that_changes_a_session_several_times_opens_each_incident_once() -> None:
    stage = watching.silent()

    asked = watching.look(stage, watching.START + 5 * watching.MIN)

    *_, last = told(asked)
    assert last == stage.machine.incidents["s1/stalled"]
    assert last.why.startswith("upstream-stall (likely): "), "it says at once all there is to say"
    assert stage.log.count("incident.opened") == 1


def test_servers_that_hang_in_one_pass_are_told_of_once_with_how_many_there_are() -> None:
    stage, sessions = fleet(8)
    asked = hang(stage, sessions[:7])

    assert [incident.why for incident in told(asked)] == [
        "7 of 8 tmux servers do not answer; their agents are not touched",
    ]


def test_the_incident_of_a_role_resolves_once_when_a_reset_ends_the_wait_of_all_its_replicas() -> None:
    stage = charges.at_its_limit()
    for index in (0, 1):
        charges.die(stage, index)
    (before,) = stage.machine.incidents.values()

    asked = stage.ask("reset", charges.sid(stage, 1))

    assert [(one.id, one.resolved_at) for one in told(asked)] == [(before.id, stage.now)]
    assert stage.log.count("incident.resolved") == 1


def test_a_hanging_server_that_is_let_go_hangs_no_more() -> None:
    stage, sessions = fleet(5)
    for session_id in sessions:
        launch = replace(stage.launch(session_id), host=ForeignSession("/tmp/tmux", "$1", f"theirs-{session_id}"))
        stage.machine.sessions[session_id] = replace(stage.session(session_id), launch=launch)
    hang(stage, sessions)

    for session_id in sessions:
        assert open_keys(stage) == ["host/stuck"]
        stage.ask("release", session_id)

    assert open_keys(stage) == []


def test_an_event_that_changes_no_condition_leaves_incidents_as_they_are() -> None:
    stage = running()
    stage.hear("waiting-human")
    before = stage.machine.incidents.copy()

    assert told(stage.see("s1")) == []
    assert stage.machine.incidents == before


@pytest.mark.parametrize(("warned_at", "is_told"), [(1099.0, True), (1100.0, True), (1101.0, False)])
def test_a_stall_that_was_warned_of_before_its_agent_is_ended_is_told(warned_at: float, is_told: bool) -> None:
    stall = Stall(StallVerdict.LOST_RESULT, Confidence.CERTAIN, ("no result came",), 1100.0, 1000.0, warned_at=warned_at)
    session = make_session(State.ENDING, state_since=1100.0, stall=stall)
    (rule,) = (rule for rule in RULES if rule.kind is IncidentKind.STALLED)

    assert (rule.holds(session), is_past(rule, session)) == (True, not is_told)


def rule_of(kind: IncidentKind) -> IncidentRule:
    return next(rule for rule in RULES if rule.kind is kind)


def test_a_question_that_only_shows_what_an_agent_left_when_it_was_ended_is_past() -> None:
    session = make_session(State.ENDING, axes={Axis.ACTIVITY: make_reading("waiting-human")})
    rule = rule_of(IncidentKind.NEEDS_INPUT)

    assert (rule.holds(session), is_past(rule, session)) == (True, True)
    assert not is_past(rule, replace(session, state=State.RUNNING))


@pytest.mark.parametrize("state", State)
def test_a_server_that_died_is_told_while_its_session_is_down(state: State) -> None:
    session = make_session(state, launch=make_launch(), last_death=make_death(Cause.SERVER_DIED))

    assert rule_of(IncidentKind.SERVER_DIED).holds(session) == (state in (State.CRASHED, State.FAILED, State.PENDING))


@pytest.mark.parametrize("state", State)
def test_a_message_is_undelivered_once_nothing_brings_its_session_back(state: State) -> None:
    session = make_session(state, queue=(Message("m1", 1000.0, "alice", 5),))

    assert rule_of(IncidentKind.UNDELIVERED).holds(session) == (state in (State.FAILED, State.STOPPED, State.SUCCEEDED))


# What the table reads


class Watched:
    """A session that remembers which of its fields were read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> object:
        derived = getattr(Session, name)
        if isinstance(derived, property) and derived.fget is not None:
            return derived.fget(self)
        self.read.add(name)
        return getattr(self._session, name)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_field_that_decides_about_an_incident_is_compared(situation: str) -> None:
    stage = SITUATIONS[situation]()
    host = incident_of(IncidentKind.MASS_DEATH, None, "many died", stage.now)
    for session in stage.machine.sessions.values():
        deciding, compared = Watched(session), Watched(session)
        for rule in RULES:
            rule.holds(deciding)  # type: ignore[arg-type]
            rule.of(deciding)  # type: ignore[arg-type]
        is_hit(deciding, host)  # type: ignore[arg-type]
        is_wedged(deciding)  # type: ignore[arg-type]
        conditions_of(compared)  # type: ignore[arg-type]

        assert deciding.read <= compared.read
