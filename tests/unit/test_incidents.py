"""What a human is told of: each condition opens once, folds in what is the same, and resolves once (P12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.builders import (
    ALWAYS,
    SITUATIONS,
    Stage,
    fleet,
    make_exit,
    make_launched,
    running,
    saturated,
)
from vigil.core.effects import Effect, Tell
from vigil.core.escalate import SEVERITY
from vigil.core.events import Condition, Ended, Exited, Notified, TimerFired
from vigil.core.incidents import NOTICES_KEPT, host_incident, key_of
from vigil.core.model import Cause, Incident, IncidentKind, Notice, Severity

PASS_S = 10.0


def told(effects: Iterable[Effect]) -> list[Incident]:
    return [effect.incident for effect in effects if isinstance(effect, Tell)]


def open_keys(stage: Stage) -> list[str]:
    return sorted(stage.machine.incidents)


def only_incident(stage: Stage) -> Incident:
    (incident,) = stage.machine.incidents.values()
    return incident


def hang(stage: Stage, session_ids: list[str], seconds: float = 90.0) -> list[Effect]:
    """The servers of these sessions do not answer, pass after pass."""
    asked: list[Effect] = []
    for _ in range(int(seconds / PASS_S)):
        asked += stage.sweep(session_ids, len(stage.machine.sessions), server="wedged")
        stage.now += PASS_S
    return asked


def die(stage: Stage, session_id: str, **found: int | bool) -> list[Effect]:
    return stage.tell(Exited(make_exit(stage.launch(session_id).id, stage.now, **found)))


def come_back(stage: Stage, session_id: str = "s1") -> None:
    """The wait of a session is over, and its next launch comes to life."""
    hold = stage.session(session_id).hold
    assert hold is not None and hold.until is not None
    stage.now = max(stage.now, hold.until)
    stage.tell(TimerFired(session_id, "hold"))
    relaunched(stage, session_id)


def relaunched(stage: Stage, session_id: str = "s1") -> None:
    """What the last launch left is gone, and the next one comes to life."""
    stage.tell(Ended(stage.launch(session_id).id, ok=True))
    stage.tell(make_launched(stage.launch(session_id).id, stage.now))


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


# What a session is


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
    assert (incident.id, incident.resolution) == (before.id, "alpha was removed")
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


@pytest.mark.parametrize("situation", SITUATIONS)
def test_after_a_restart_the_same_incidents_are_open_and_all_are_told_to_the_clock(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = dict(stage.machine.incidents)

    asked = stage.restart()

    assert stage.machine.incidents == before
    assert told(asked) == list(before.values())


# The host


HOLDS = Condition(IncidentKind.LOW_MEMORY, True, "180 MB are left", 1100.0)
OVER = Condition(IncidentKind.LOW_MEMORY, False, "2 GB are free", 1200.0)


def test_a_condition_of_the_host_opens_an_incident_and_its_end_resolves_it() -> None:
    stage = Stage()
    (opened,) = told(stage.tell(HOLDS))
    stage.now = 1200.0

    (resolved,) = told(stage.tell(OVER))

    assert opened == host_incident(IncidentKind.LOW_MEMORY, "180 MB are left", 1100.0)
    assert (resolved.id, resolved.resolved_at, resolved.resolution) == (opened.id, 1200.0, "2 GB are free")
    assert stage.log == ["incident.opened", "incident.resolved"]


def test_a_condition_that_is_said_again_is_the_same_incident() -> None:
    stage = Stage()
    stage.tell(HOLDS)

    assert stage.tell(HOLDS) == []
    assert stage.tell(Condition(IncidentKind.LOW_MEMORY, True, "90 MB are left", 1150.0)) == []

    incident = only_incident(stage)
    assert (incident.count, incident.why, incident.opened_at) == (2, "90 MB are left", 1100.0)
    assert stage.incidents[incident.id] == incident
    assert stage.log == ["incident.opened"]


def test_the_end_of_what_never_began_changes_nothing() -> None:
    stage = Stage()

    assert stage.tell(OVER) == []
    assert (stage.incidents, stage.log) == ({}, [])


def test_a_condition_that_comes_back_is_another_incident() -> None:
    stage = Stage()

    stage.tell(HOLDS, OVER, Condition(IncidentKind.LOW_MEMORY, True, "180 MB are left", 1300.0))

    assert len(stage.incidents) == 2
    assert only_incident(stage).opened_at == 1300.0


def test_every_kind_of_incident_has_a_severity_and_its_own_key() -> None:
    assert set(SEVERITY) == set(IncidentKind)
    assert len({key_of(kind, session_id) for kind in IncidentKind for session_id in ("host", "s1")}) == 2 * len(IncidentKind)


# Notices


def make_notice(notice_id: str = "n1", state: str = "sent", at: float = 1100.0) -> Notice:
    return Notice(notice_id, "desk", state, at)


def test_what_became_of_a_notice_is_kept_with_its_incident() -> None:
    stage = Stage()
    stage.tell(HOLDS)
    incident = only_incident(stage)

    (known,) = told(stage.tell(Notified(incident.id, make_notice())))

    assert known.notices == (make_notice(),)
    assert stage.incidents[incident.id] == only_incident(stage) == known
    assert stage.log[-1] == "incident.notified"
    assert stage.entries[-1].data["route"] == "desk"


def test_a_notice_that_was_sent_again_is_kept_once_with_its_newest_fate() -> None:
    stage = Stage()
    stage.tell(HOLDS)
    incident = only_incident(stage)

    stage.tell(Notified(incident.id, make_notice(state="failed")), Notified(incident.id, make_notice(at=1130.0)))

    assert only_incident(stage).notices == (make_notice(at=1130.0),)


def test_the_newest_notices_are_kept_and_not_all_of_them() -> None:
    stage = Stage()
    stage.tell(HOLDS)
    incident = only_incident(stage)

    for number in range(NOTICES_KEPT + 50):
        stage.tell(Notified(incident.id, make_notice(f"n{number}")))

    kept = only_incident(stage).notices
    assert [notice.id for notice in kept] == [f"n{number}" for number in range(50, NOTICES_KEPT + 50)]


def test_a_notice_that_arrives_after_its_incident_is_over_is_kept_too() -> None:
    stage = Stage()
    stage.tell(HOLDS)
    incident = only_incident(stage)
    stage.tell(OVER)

    (known,) = told(stage.tell(Notified(incident.id, make_notice())))

    assert known.notices == (make_notice(),)
    assert known.resolved_at is not None
    assert stage.incidents[incident.id] == known
    assert open_keys(stage) == []


def test_a_notice_of_an_incident_that_nobody_knows_changes_nothing() -> None:
    stage = Stage()

    assert stage.tell(Notified("i-host-low-memory-1", make_notice())) == []
    assert (stage.incidents, stage.log) == ({}, [])


# Whatever happens


SESSIONS = 6
HAPPENS = st.sampled_from(
    (
        "hangs",
        "hang",
        "answer",
        "unreadable",
        "waits",
        "works",
        "dies",
        "server dies",
        "comes back",
        "low memory",
        "enough memory",
        "restart",
    )
)


def happen(stage: Stage, what: str, session_id: str) -> None:
    """Let one thing happen to a session, or to all of them, or to the host."""
    sessions = [f"s{number}" for number in range(1, SESSIONS + 1)]
    living = [each for each in sessions if stage.launch(each).ended_at is None]
    if what in ("hang", "answer"):
        stage.sweep(living, SESSIONS, server="wedged" if what == "hang" else "alive")
    elif what == "low memory":
        stage.tell(Condition(IncidentKind.LOW_MEMORY, True, f"little is left at {stage.now}", stage.now))
    elif what == "enough memory":
        stage.tell(Condition(IncidentKind.LOW_MEMORY, False, "enough is left", stage.now))
    elif what == "restart":
        stage.restart()
    elif session_id not in living:
        if stage.session(session_id).hold is not None and what == "comes back":
            come_back(stage, session_id)
    elif what in ("hangs", "unreadable"):
        stage.see(session_id, **({"server": "wedged"} if what == "hangs" else {"runtime": "failed", "process": "failed"}))
    elif what in ("waits", "works"):
        stage.hear("waiting-human" if what == "waits" else "working", session_id)
    elif what in ("dies", "server dies"):
        die(stage, session_id, exit_code=1, server_ended=what == "server dies")


@given(st.lists(st.tuples(HAPPENS, st.integers(1, SESSIONS), st.sampled_from((0.5, 5.0, 30.0))), max_size=40))
def test_whatever_happens_an_incident_opens_once_and_resolves_once_and_one_is_open_of_each_kind(
    story: list[tuple[str, int, float]],
) -> None:
    stage, _ = fleet(SESSIONS, ALWAYS)
    for what, number, seconds in story:
        stage.now += seconds
        happen(stage, what, f"s{number}")

        unresolved = [incident for incident in stage.incidents.values() if incident.resolved_at is None]
        assert {incident.key: incident for incident in unresolved} == stage.machine.incidents
        assert len(unresolved) == len(stage.machine.incidents), "two are open of one kind"

    opened = Counter(entry.data["incident"] for entry in stage.entries if entry.kind == "incident.opened")
    resolved = Counter(entry.data["incident"] for entry in stage.entries if entry.kind == "incident.resolved")
    assert set(opened) == set(stage.incidents)
    assert set(resolved) == {incident.id for incident in stage.incidents.values() if incident.resolved_at is not None}
    assert {*opened.values(), *resolved.values()} <= {1}


def test_an_incident_from_the_future_counts_from_now_for_a_new_daemon() -> None:
    stage = running()
    stage.ask("stop")
    stage.end(ok=False)  # it needs a human
    stage.now -= 3600.0  # the clock was set back while the host was off

    told_again = [effect.incident for effect in stage.restart() if isinstance(effect, Tell)]

    assert [(incident.kind, incident.opened_at) for incident in told_again] == [(IncidentKind.STUCK, stage.now)]
    assert [incident.opened_at for incident in stage.incidents.values()] == [stage.now]
