"""When most of the host is hit at once, that is one incident of the host."""

from __future__ import annotations

import pytest

from tests.unit.builders import ALWAYS, fleet
from tests.unit.incidents import PASS_S, come_back, die, hang, open_keys, told
from vigil.core.effects import Effect, SetTimer, TimerKind
from vigil.core.events import TimerFired
from vigil.core.handlers.host_incident import SETTLE_S
from vigil.core.model.incident import IncidentKind

# Servers that hang


def test_when_most_servers_hang_that_is_one_incident_of_the_host_and_none_of_a_session() -> None:
    stage, sessions = fleet(6)

    asked = hang(stage, sessions[:5])

    assert [stage.state(session_id) for session_id in sessions] == ["stuck"] * 5 + ["running"]
    assert open_keys(stage) == ["host/stuck"]
    assert [incident.key for incident in told(asked)] == ["host/stuck"]
    assert stage.log.count("incident.opened") == 1


def test_hanging_servers_are_the_hosts_matter_until_all_of_them_answer() -> None:
    stage, sessions = fleet(6)
    hang(stage, sessions[:5])

    for session_id in sessions[:4]:
        (incident,) = told(stage.see(session_id))
        assert incident.resolved_at is None
    assert incident.why.startswith("1 of 6 tmux servers"), "it says how things are now"
    asked = stage.see(sessions[4])

    (incident,) = told(asked)
    assert (incident.key, incident.resolved_at) == ("host/stuck", stage.now)
    assert incident.resolution == "every tmux server answers again"
    assert open_keys(stage) == []
    assert stage.log.count("incident.resolved") == 1


def test_a_hanging_server_that_is_stopped_or_removed_hangs_no_more() -> None:
    stage, sessions = fleet(6)
    hang(stage, sessions[:5])

    for session_id, verb in zip(sessions[:5], ("stop", "rm", "restart", "stop", "rm"), strict=True):
        assert open_keys(stage) == ["host/stuck"]
        stage.ask(verb, session_id)

    assert open_keys(stage) == []


@pytest.mark.parametrize(("hanging", "servers"), [(1, 1), (4, 4), (4, 100), (5, 10), (5, 100)])
def test_a_few_servers_that_hang_are_incidents_of_their_sessions(hanging: int, servers: int) -> None:
    stage, sessions = fleet(servers)

    hang(stage, sessions[:hanging])

    assert open_keys(stage) == sorted(f"{session_id}/stuck" for session_id in sessions[:hanging])


def test_an_incident_of_the_host_says_nothing_for_who_is_stuck_for_another_reason() -> None:
    stage, sessions = fleet(6)
    hang(stage, sessions[:5])

    for _ in range(8):
        stage.see("s6", runtime="failed", process="failed")
        stage.now += PASS_S

    assert open_keys(stage) == ["host/stuck", "s6/stuck"]


# Deaths


def test_most_sessions_that_die_within_a_second_are_one_incident_of_the_host() -> None:
    stage, sessions = fleet(6)
    asked: list[Effect] = []

    for session_id in sessions:
        stage.now += 0.1
        asked += die(stage, session_id, exit_code=1)

    assert open_keys(stage) == ["host/mass-death"]
    assert {incident.id for incident in told(asked)} == {incident.id for incident in stage.machine.incidents.values()}
    assert len(stage.deaths) == 6


def test_a_server_that_died_after_the_mass_death_was_seen_is_part_of_it() -> None:
    stage, sessions = fleet(8)
    for session_id in sessions[:5]:
        die(stage, session_id, exit_code=1)

    for session_id in sessions[5:]:
        stage.now += 0.1
        die(stage, session_id, server_ended=True, server_signal=9)

    assert open_keys(stage) == ["host/mass-death"]


@pytest.mark.parametrize(("dead", "sessions_in_all"), [(4, 4), (4, 5), (5, 10), (6, 12)])
def test_fewer_than_five_or_half_that_die_at_once_are_no_matter_of_the_host(dead: int, sessions_in_all: int) -> None:
    stage, sessions = fleet(sessions_in_all)

    for session_id in sessions[:dead]:
        die(stage, session_id, exit_code=1)

    assert open_keys(stage) == []


def test_deaths_one_after_the_other_are_no_matter_of_the_host() -> None:
    stage, sessions = fleet(6)

    for session_id in sessions:
        die(stage, session_id, exit_code=1)
        stage.now += 0.3

    assert open_keys(stage) == []


def test_a_mass_death_is_over_when_all_it_hit_are_up_again() -> None:
    stage, sessions = fleet(6, ALWAYS)
    for session_id in sessions:
        die(stage, session_id, exit_code=1)
    stage.now += 60.0

    for session_id in sessions:
        assert open_keys(stage) == ["host/mass-death"]
        come_back(stage, session_id)

    assert open_keys(stage) == []
    assert stage.log.count("incident.resolved") == 1
    (over,) = (one for one in stage.incidents.values() if one.kind is IncidentKind.MASS_DEATH)
    assert over.over_at == over.resolved_at, "the next one is another one, however soon it comes"


def test_on_a_host_with_many_a_server_that_died_is_told_once_it_is_clear_that_it_died_alone() -> None:
    stage, _ = fleet(6)

    asked = die(stage, "s1", server_ended=True, server_signal=9)
    assert (open_keys(stage), told(asked)) == ([], [])
    timer = next(effect for effect in asked if isinstance(effect, SetTimer) and effect.kind is TimerKind.INCIDENTS)
    stage.now = timer.at
    stage.tell(TimerFired("s1", TimerKind.INCIDENTS))

    assert timer.at == 1100.0 + SETTLE_S
    assert open_keys(stage) == ["s1/server-died"]
