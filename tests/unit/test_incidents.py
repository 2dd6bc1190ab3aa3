"""What a human is told of: each condition opens once, folds in what is the same, and resolves once (P12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

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
from vigil.core.escalate import SEVERITY, Ladder, Step, Telling, due_notices, next_at, steps_of
from vigil.core.events import Acked, Condition, Configured, Ended, Exited, Notified, Reached, TimerFired
from vigil.core.incident import Incident, IncidentKind, Notice, Severity
from vigil.core.incidents import MARGIN_S, REMEMBERED_S, SAME_S, host_incident, key_of
from vigil.core.model import Cause
from vigil.core.notices import NOTICES_KEPT

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


# What comes back


def waits(stage: Stage, waiting: bool) -> list[Effect]:
    return stage.hear("waiting-human" if waiting else "working")


def last_told(effects: Iterable[Effect], kind: IncidentKind = IncidentKind.NEEDS_INPUT) -> Incident:
    return [incident for incident in told(effects) if incident.kind is kind][-1]


def test_a_condition_that_flaps_every_five_seconds_for_an_hour_is_one_incident_with_a_count() -> None:
    stage, asked = running(), []
    for _ in range(360):
        asked += waits(stage, True)
        stage.now += 5
        asked += waits(stage, False)
        stage.now += 5

    assert len({incident.id for incident in told(asked)}) == 1
    assert (last_told(asked).count, last_told(asked).reopened) == (360, 359)
    assert [notice.event for notice in walk(told(asked))] == ["opened", "resolved"]


def walk(versions: list[Incident]) -> list[Notice]:
    """Live through the versions of one incident, by a ladder that tells at once; return what was told, all of it delivered."""
    telling = Telling((Ladder((Step("ops"),)),))
    notices: list[Notice] = []
    for version, later in zip(versions, [*versions[1:], None], strict=True):
        now: float | None = max(version.opened_at, version.reopened_at or 0.0, version.resolved_at or 0.0)
        until = 1e12 if later is None else max(later.reopened_at or 0.0, later.resolved_at or 0.0)
        while now is not None and now < until:
            seen = replace(version, notices=tuple(notices))
            due = due_notices(seen, telling, now)
            notices += [Notice(one.notice_id, one.route, "sent", now, event=one.event) for one in due]
            now = next_at(replace(version, notices=tuple(notices)), telling, now)
    return notices


def test_what_comes_back_and_stays_is_told_again_to_those_who_know_of_it() -> None:
    stage = running()
    asked = [*waits(stage, True)]
    stage.now += 20
    asked += waits(stage, False)
    stage.now += 5
    asked += waits(stage, True)

    notices = walk(told(asked))

    assert [(notice.event, notice.at - 1000.0) for notice in notices[1:]] == [("again", 25 + stage_began(asked) + SAME_S)]
    assert last_told(asked).count == 2


def stage_began(effects: Iterable[Effect]) -> float:
    return told(effects)[0].opened_at - 1000.0


def test_what_comes_back_later_is_another_one_and_the_time_within_which_it_is_the_same_grows() -> None:
    stage, ids, windows = running(), [], []
    for _ in range(5):
        ids.append(last_told(waits(stage, True)).id)
        stage.now += 1
        over = last_told(waits(stage, False))
        assert over.resolved_at is not None and over.over_at is not None
        windows.append(over.over_at - over.resolved_at - MARGIN_S)
        stage.now = over.over_at

    assert len(set(ids)) == 5
    assert windows == [10, 20, 40, 80, 160]


def test_an_hour_of_calm_is_forgotten() -> None:
    stage = running()
    waits(stage, True)
    waits(stage, False)
    stage.now += REMEMBERED_S + 1

    assert last_told(waits(stage, True)).flaps == 0


def test_the_memory_of_what_was_over_just_now_outlives_the_daemon() -> None:
    stage = running()
    first = last_told(waits(stage, True))
    stage.now += 1
    waits(stage, False)
    stage.restart()
    stage.now += 1

    assert (again := last_told(waits(stage, True))).id == first.id
    assert again.count == 2


def test_an_incident_of_a_removed_session_is_over_for_that_reason_and_at_once() -> None:
    stage = running()
    waits(stage, True)

    stage.ask("rm")
    over = last_told(stage.end())

    assert (over.resolution, over.over_at) == ("alpha was removed", over.resolved_at)
    assert open_keys(stage) == []


# A person knows


def test_an_acknowledged_incident_stays_open_until_its_condition_ends() -> None:
    stage = running()
    incident = last_told(waits(stage, True))
    retrying = Notice(f"{incident.id}/0/0", "ops", "retrying", stage.now, retry_at=stage.now + 5)
    stage.tell(Notified(incident.id, retrying))

    acked = last_told(stage.tell(Acked(incident.id, "alice")))

    assert (acked.acked_at, acked.acked_by, acked.resolved_at) == (stage.now, "alice", None)
    assert [notice.state for notice in acked.notices] == ["cancelled"]
    assert told(stage.tell(Acked(incident.id, "bob"))) == []
    assert last_told(waits(stage, False)).resolved_at == stage.now


# Routes that do not deliver


def fail(stage: Stage, incident: Incident, route: str, state: str = "failed") -> list[Effect]:
    notice = Notice(f"{incident.id}/0/0", route, state, stage.now, "exit 1", attempts=3)
    return stage.tell(Notified(incident.id, notice))


@pytest.mark.parametrize("state", ["failed", "unknown"])
def test_a_route_that_gave_up_is_an_incident_of_its_own_until_it_delivers(state: str) -> None:
    stage = running()
    stage.tell(Configured(("ops", "mail")))
    incident = last_told(waits(stage, True))

    opened = last_told(fail(stage, incident, "ops", state), IncidentKind.UNDELIVERED)
    assert (opened.key, opened.about, opened.severity) == ("route-ops/undelivered", ("ops",), Severity.ACTION)
    assert fail(stage, opened, "mail")  # which is the other one's
    assert open_keys(stage) == ["route-mail/undelivered", "route-ops/undelivered", "s1/needs-input"]
    assert stage.machine.incidents["route-ops/undelivered"].count == 1
    fail(stage, incident, "ops", state)
    assert stage.machine.incidents["route-ops/undelivered"].count == 2

    stage.tell(Reached("ops"))
    stage.tell(Configured(("ops",)))
    assert open_keys(stage) == ["s1/needs-input"]


def test_that_a_route_does_not_deliver_is_told_by_the_others() -> None:
    about = replace(host_incident(IncidentKind.UNDELIVERED, "ops does not deliver", 1000.0), about=("ops",))
    ladder = Ladder((Step("ops"), Step("mail", 60.0)), severity=Severity.ACTION)

    assert steps_of(about, Telling((ladder,), routes=("ops", "mail"))) == (Step("mail", 0.0),)
    assert steps_of(about, Telling((), routes=("ops", "mail", "phone"))) == (Step("mail"), Step("phone"))
    assert steps_of(about, Telling((Ladder((), kind=IncidentKind.UNDELIVERED),), routes=("ops", "mail"))) == ()


def test_what_was_being_sent_when_the_daemon_ended_is_sent_again_and_what_waited_goes_on() -> None:
    stage = running()
    incident = last_told(waits(stage, True))
    stage.tell(Notified(incident.id, Notice(f"{incident.id}/0/0", "ops", "sending", stage.now)))

    seen = last_told(stage.restart())

    (notice,) = seen.notices
    assert (notice.state, notice.unsure, notice.retry_at) == ("retrying", 1, stage.now)
