"""What a human is told of: each condition opens once, folds in what is the same, and resolves once (P12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.builders import ALWAYS, SITUATIONS, Stage, fleet, running
from tests.unit.incidents import HOLDS, OVER, come_back, die, last_told, only_incident, open_keys, told, waits
from vigil.core.effects import Effect, Tell
from vigil.core.events import Acked, Condition, Configured, Notified
from vigil.core.model.incident import (
    Incident,
    IncidentKind,
    Ladder,
    LadderStep,
    Notice,
    NoticeEvent,
    NoticeState,
    Rung,
    Telling,
)
from vigil.core.rules.escalation import SEVERITY, due_notices, is_settled, next_at
from vigil.core.rules.incident import MARGIN_S, REMEMBERED_S, SAME_S, incident_of, key_of

OPS = Telling((Ladder((LadderStep("ops"),)),))


@pytest.mark.parametrize("situation", SITUATIONS)
def test_after_a_restart_the_same_incidents_are_open_and_all_are_told_to_the_clock(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = dict(stage.machine.incidents)

    asked = stage.restart()

    assert stage.machine.incidents == before
    assert told(asked) == list(before.values())


# The host


def test_a_condition_of_the_host_opens_an_incident_and_its_end_resolves_it() -> None:
    stage = Stage()
    (opened,) = told(stage.tell(HOLDS))
    stage.now = 1200.0

    (resolved,) = told(stage.tell(OVER))

    assert opened == incident_of(IncidentKind.LOW_MEMORY, None, "180 MB are left", 1100.0)
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


def test_a_condition_that_flaps_every_five_seconds_for_an_hour_is_one_incident_with_a_count() -> None:
    stage, asked = running(), []
    for _ in range(720):
        asked += waits(stage, True)
        stage.now += 2.5
        asked += waits(stage, False)
        stage.now += 2.5

    assert len({incident.id for incident in told(asked)}) == 1
    assert (last_told(asked).count, last_told(asked).reopened) == (720, 719)
    assert [notice.event for notice in walk(told(asked))] == ["opened", "resolved"]


def walk(versions: list[Incident]) -> list[Notice]:
    """Live through the versions of one incident, by a ladder that tells at once; return what was told, all of it delivered."""
    notices: list[Notice] = []
    for version, later in zip(versions, [*versions[1:], None], strict=True):
        now: float | None = max(version.opened_at, version.reopened_at or 0.0, version.resolved_at or 0.0)
        until = 1e12 if later is None else max(later.reopened_at or 0.0, later.resolved_at or 0.0)
        while now is not None and now < until:
            seen = replace(version, notices=tuple(notices))
            due = due_notices(seen, OPS, now)
            notices += [Notice(one.notice_id, one.route, NoticeState.SENT, now, event=one.event, rung=one.rung) for one in due]
            now = next_at(replace(version, notices=tuple(notices)), OPS, now)
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
    knows = replace(over, notices=(Notice(f"{over.id}/0/0", "ops", NoticeState.SENT, stage.now, rung=Rung(0, 0)),))
    assert (due_notices(knows, OPS, stage.now + 1e6), next_at(knows, OPS, stage.now), is_settled(knows)) == ([], None, True)


def test_what_a_dead_agent_waited_for_is_nobody_elses_matter_when_its_session_is_removed() -> None:
    stage = running()
    waits(stage, True)
    stage.exit(signal=9)
    assert stage.state() == "failed"

    asked = stage.ask("rm")

    assert told(asked) == []
    assert stage.log.count("incident.opened") == 1


def test_what_was_over_just_before_its_session_was_removed_is_not_called_over_after_it() -> None:
    stage = running()
    first = last_told(waits(stage, True))
    stage.tell(Notified(first.id, Notice(f"{first.id}/0/0", "ops", NoticeState.SENT, stage.now, rung=Rung(0, 0))))
    over = last_told(waits(stage, False))
    assert next_at(over, OPS, stage.now) == over.over_at

    stage.ask("rm")
    hushed = last_told(stage.end())

    assert (hushed.id, hushed.resolution) == (over.id, over.resolution)
    assert due_notices(hushed, OPS, stage.now + 1e6) == []
    late = Notice(
        f"{first.id}/resolved/ops", "ops", NoticeState.RETRYING, stage.now, event=NoticeEvent.RESOLVED, retry_at=stage.now + 5
    )
    stage.tell(Notified(first.id, late))  # it was on its way when the session was removed, and failed
    assert stage.machine._book.find_incident(first.id).notices[-1].state == "cancelled"  # type: ignore[union-attr]


# A person knows


def test_an_acknowledged_incident_stays_open_until_its_condition_ends() -> None:
    stage = running()
    incident = last_told(waits(stage, True))
    retrying = Notice(f"{incident.id}/0/0", "ops", NoticeState.RETRYING, stage.now, retry_at=stage.now + 5)
    stage.tell(Notified(incident.id, retrying))

    acked = last_told(stage.tell(Acked(incident.id, "alice")))

    assert (acked.acked_at, acked.acked_by, acked.resolved_at) == (stage.now, "alice", None)
    assert [notice.state for notice in acked.notices] == ["cancelled"]
    assert told(stage.tell(Acked(incident.id, "bob"))) == []
    assert last_told(waits(stage, False)).resolved_at == stage.now


# What was urgent, and over before anybody heard


@pytest.mark.parametrize(
    ("kind", "routes", "owed"),
    [
        (IncidentKind.KEEPER_LOST, ("ops",), True),
        (IncidentKind.KEEPER_LOST, (), False),  # nobody can be told
        (IncidentKind.LOW_MEMORY, ("ops",), False),
    ],
)
def test_only_what_was_urgent_is_still_told_when_it_is_over(kind: IncidentKind, routes: tuple[str, ...], owed: bool) -> None:
    stage = Stage()
    stage.tell(Configured(routes, ()))
    (opened,) = told(stage.tell(Condition(kind, True, "it is so", stage.now)))
    tried = Notice(f"{opened.id}/0/0", "ops", NoticeState.RETRYING, stage.now, rung=Rung(0, 0), retry_at=stage.now + 5)
    stage.tell(Notified(opened.id, tried))

    (over,) = told(stage.tell(Condition(kind, False, "it is not so", stage.now + 1)))

    assert (over.owed, over.notices[0].state) == (owed, NoticeState.RETRYING if owed else NoticeState.CANCELLED)
    assert [one.notice_id for one in due_notices(over, OPS, stage.now + 5)] == ([tried.id] if owed else [])


def test_what_somebody_knows_of_is_not_told_when_it_is_over() -> None:
    stage = Stage()
    (opened,) = told(stage.tell(Condition(IncidentKind.KEEPER_LOST, True, "it is gone", stage.now)))
    stage.tell(Acked(opened.id, "operator"))

    (over,) = told(stage.tell(Condition(IncidentKind.KEEPER_LOST, False, "it is back", stage.now + 1)))

    assert (over.owed, due_notices(over, OPS, stage.now + 60)) == (False, [])


def test_what_comes_back_before_anybody_heard_is_told_as_open() -> None:
    stage = Stage()
    (opened,) = told(stage.tell(Condition(IncidentKind.KEEPER_LOST, True, "it is gone", stage.now)))
    stage.tell(Condition(IncidentKind.KEEPER_LOST, False, "it is back", stage.now))
    stage.now += 1

    (again,) = told(stage.tell(Condition(IncidentKind.KEEPER_LOST, True, "it is gone", stage.now)))

    assert (again.id, again.owed, again.resolved_at) == (opened.id, False, None)
    assert [one.event for one in due_notices(again, OPS, stage.now)] == [NoticeEvent.OPENED]


def test_of_a_session_that_is_removed_nothing_is_owed_any_more() -> None:
    stage = running(ALWAYS)
    die(stage, "s1", server_ended=True, signal=9)
    come_back(stage)
    assert [incident.owed for incident in stage.machine._book.resolved.values()] == [True]

    stage.ask("rm")
    stage.exit(signal=15)
    stage.end()

    assert [(incident.owed, incident.hushed) for incident in stage.machine._book.resolved.values()] == [(False, True)]
