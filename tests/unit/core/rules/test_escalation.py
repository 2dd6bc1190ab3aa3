"""One notice when an incident opens, reminders on their schedule, one when it resolves (P12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.core.model.incident import (
    Incident,
    IncidentKind,
    Ladder,
    LadderStep,
    Notice,
    NoticeEvent,
    NoticeState,
    Rung,
    Severity,
    Telling,
)
from vigil.core.rules.escalation import SEVERITY, Due, due_notices, is_settled, next_at, steps_of, usual_ladders

OPENED_AT = 1_700_000_000.0  # as large as real times are: sums are rounded as they will be
OPS = LadderStep("ops")
NAGGING = LadderStep("script", after_s=1800, repeat_s=7200)


def make_incident(**changes: Any) -> Incident:
    values: dict[str, Any] = {
        "id": "i1",
        "key": "s1/stuck",
        "kind": IncidentKind.STUCK,
        "severity": Severity.URGENT,
        "session_id": "s1",
        "session": "alpha",
        "opened_at": OPENED_AT,
        "why": "its server does not answer",
    }
    return Incident(**(values | changes))


def make_ladders(*steps: LadderStep) -> Telling:
    return Telling((Ladder(steps),))


def record(incident: Incident, due: list[Due], state: str = "sent") -> Incident:
    notices = tuple(
        Notice(notice.notice_id, notice.route, NoticeState(state), OPENED_AT, event=notice.event, rung=notice.rung)
        for notice in due
    )
    return replace(incident, notices=incident.notices + notices)


def shown(due: list[Due]) -> list[tuple[str, str, str]]:
    return [(notice.notice_id, notice.route, notice.event) for notice in due]


# Severity and ladder


def test_every_kind_has_its_severity() -> None:
    kinds = {severity: {kind.value for kind in IncidentKind if SEVERITY[kind] is severity} for severity in Severity}

    assert kinds == {
        Severity.URGENT: {"saturated", "stuck", "server-died", "mass-death", "keeper-lost", "store-lost", "exhausted"},
        Severity.ACTION: {"needs-input", "stalled", "auth", "tainted", "undelivered"},
        Severity.WARNING: {"limit", "unhealthy-prober", "late-daemon", "low-memory"},
    }


URGENT = Ladder((LadderStep("urgent"),), severity=Severity.URGENT)
STUCK = Ladder((LadderStep("stuck"),), kind=IncidentKind.STUCK)
BOTH = Ladder((LadderStep("both"),), severity=Severity.URGENT, kind=IncidentKind.STUCK)
ANY = Ladder((LadderStep("any"),))
OTHERS = (Ladder((LadderStep("x"),), kind=IncidentKind.AUTH), Ladder((LadderStep("x"),), severity=Severity.WARNING))


@pytest.mark.parametrize(
    ("ladders", "route"),
    [
        ((URGENT, STUCK), "stuck"),
        ((STUCK, URGENT), "stuck"),
        ((ANY, URGENT), "urgent"),
        ((ANY, STUCK), "stuck"),
        ((STUCK, BOTH), "stuck"),
        ((BOTH, STUCK), "both"),
        ((*OTHERS, ANY), "any"),
        ((Ladder((LadderStep("x"),), severity=Severity.WARNING, kind=IncidentKind.STUCK), URGENT), "urgent"),
        ((Ladder((LadderStep("x"),), severity=Severity.URGENT, kind=IncidentKind.AUTH), URGENT), "urgent"),
    ],
)
def test_the_first_ladder_that_matches_decides_and_a_kind_goes_before_a_severity(
    ladders: tuple[Ladder, ...], route: str
) -> None:
    assert [step.route for step in steps_of(make_incident(), Telling(ladders))] == [route]


@pytest.mark.parametrize("ladders", [(), OTHERS])
def test_an_incident_without_a_ladder_is_told_to_nobody(ladders: tuple[Ladder, ...]) -> None:
    assert steps_of(make_incident(), Telling(ladders)) == ()
    assert due_notices(make_incident(), Telling(ladders), OPENED_AT + 1e6) == []
    assert next_at(make_incident(), Telling(ladders), OPENED_AT + 1e6) is None


# While it is open


def test_the_first_step_is_due_when_the_incident_opens() -> None:
    due = due_notices(make_incident(), make_ladders(OPS, NAGGING), OPENED_AT)

    assert due == [Due("i1/0/0", "ops", NoticeEvent.OPENED, make_incident(), rung=Rung(0, 0))]


def test_a_step_is_due_at_its_moment_and_not_before() -> None:
    ladders = make_ladders(OPS, NAGGING)
    incident = record(make_incident(), due_notices(make_incident(), ladders, OPENED_AT))

    assert due_notices(incident, ladders, OPENED_AT + 1799.999) == []
    assert next_at(incident, ladders, OPENED_AT + 1799.999) == OPENED_AT + 1800
    assert shown(due_notices(incident, ladders, OPENED_AT + 1800)) == [("i1/1/0", "script", "opened")]


def test_a_step_repeats_on_its_schedule() -> None:
    incident, ladders, seen = make_incident(), make_ladders(NAGGING), []
    now: float | None = OPENED_AT
    for _ in range(4):
        assert now is not None
        due = due_notices(incident, ladders, now)
        seen += [(now - OPENED_AT, *notice) for notice in shown(due)]
        incident = record(incident, due)
        now = next_at(incident, ladders, now)

    assert seen == [
        (1800, "i1/0/0", "script", "opened"),
        (1800 + 7200, "i1/0/1", "script", "reminder"),
        (1800 + 2 * 7200, "i1/0/2", "script", "reminder"),
    ]


@pytest.mark.parametrize("recorded", [0, 1])
def test_of_repeats_that_were_missed_only_the_newest_is_due(recorded: int) -> None:
    ladders = make_ladders(NAGGING)
    incident = record(make_incident(), due_notices(make_incident(), ladders, OPENED_AT + 1800)[:recorded])
    now = OPENED_AT + 1800 + 5.5 * 7200

    due = due_notices(incident, ladders, now)

    assert shown(due) == [("i1/0/5", "script", "reminder" if recorded else "opened")]
    assert due_notices(record(incident, due), ladders, now) == []
    assert next_at(record(incident, due), ladders, now) == OPENED_AT + 1800 + 6 * 7200


def test_a_route_named_twice_hears_once_that_it_opened() -> None:
    due = due_notices(make_incident(), make_ladders(OPS, LadderStep("ops", after_s=60), LadderStep("script")), OPENED_AT + 60)

    assert shown(due) == [("i1/0/0", "ops", "opened"), ("i1/1/0", "ops", "reminder"), ("i1/2/0", "script", "opened")]


def test_a_route_that_was_never_reached_hears_in_the_next_notice_that_it_opened() -> None:
    ladders = make_ladders(LadderStep("ops", repeat_s=60))
    incident = record(make_incident(), due_notices(make_incident(), ladders, OPENED_AT), state="failed")

    assert due_notices(incident, ladders, OPENED_AT) == []
    assert shown(due_notices(incident, ladders, OPENED_AT + 60)) == [("i1/0/1", "ops", "opened")]


def test_a_clock_that_was_set_back_brings_no_older_repeat() -> None:
    ladders = make_ladders(LadderStep("ops", repeat_s=60))
    incident = record(make_incident(), due_notices(make_incident(), ladders, OPENED_AT + 600))

    assert due_notices(incident, ladders, OPENED_AT + 300) == []
    assert next_at(incident, ladders, OPENED_AT + 300) == OPENED_AT + 660


def test_a_repeat_whose_moment_was_rounded_down_is_not_due_early() -> None:
    step = LadderStep("ops", after_s=0.10817231448405973, repeat_s=0.7)  # now // 0.7 says 2, the moment of 2 is one bit later
    incident, now = make_incident(opened_at=0.0), 1.5081723144840595

    assert [notice.notice_id for notice in due_notices(incident, make_ladders(step), now)] == ["i1/0/1"]


def test_what_is_due_now_is_also_what_comes_next() -> None:
    assert next_at(make_incident(), make_ladders(OPS), OPENED_AT + 5) == OPENED_AT + 5


def test_an_acknowledged_incident_is_not_mentioned_again() -> None:
    ladders = make_ladders(OPS, NAGGING)
    incident = replace(make_incident(), acked_at=OPENED_AT + 1)

    assert due_notices(incident, ladders, OPENED_AT + 1e6) == []
    assert next_at(incident, ladders, OPENED_AT + 1e6) is None


# When it is over


@pytest.mark.parametrize("acked_at", [None, OPENED_AT + 1])
def test_a_resolved_incident_is_over_for_each_route_that_was_told_and_for_no_other(acked_at: float | None) -> None:
    ladders = make_ladders(OPS, LadderStep("dead"), LadderStep("script", after_s=3600))
    told, failed = due_notices(make_incident(), ladders, OPENED_AT)
    incident = record(record(make_incident(), [told]), [failed], state="failed")
    incident = replace(incident, acked_at=acked_at, resolved_at=OPENED_AT + 10)

    due = due_notices(incident, ladders, OPENED_AT + 10)

    assert shown(due) == [("i1/resolved/ops", "ops", "resolved")]
    assert next_at(incident, ladders, OPENED_AT + 10) == OPENED_AT + 10
    assert due_notices(record(incident, due), ladders, OPENED_AT + 1e6) == []
    assert next_at(record(incident, due), ladders, OPENED_AT + 1e6) is None


def test_an_incident_that_nobody_was_told_of_ends_without_a_word() -> None:
    incident = replace(make_incident(), resolved_at=OPENED_AT + 1)

    assert due_notices(incident, make_ladders(OPS), OPENED_AT + 1) == []
    assert next_at(incident, make_ladders(OPS), OPENED_AT + 1) is None


def test_the_all_clear_goes_out_also_when_the_ladder_is_gone() -> None:
    incident = record(make_incident(), due_notices(make_incident(), make_ladders(OPS), OPENED_AT))

    assert shown(due_notices(replace(incident, resolved_at=OPENED_AT + 9), Telling(), OPENED_AT + 9)) == [
        ("i1/resolved/ops", "ops", "resolved")
    ]


# Whatever happens


STEPS = st.builds(
    LadderStep,
    route=st.sampled_from(["ops", "script", "mail"]),
    after_s=st.one_of(st.just(0.0), st.floats(0, 10_000)),
    repeat_s=st.one_of(st.none(), st.floats(0.1, 10_000)),
)
LADDERS = st.lists(STEPS, max_size=4).map(lambda steps: make_ladders(*steps))
PAUSES = st.lists(st.one_of(st.floats(0, 100), st.floats(0, 20_000)), max_size=20)
STATES = st.sampled_from(["sent", "failed"])


@given(LADDERS, PAUSES, st.data())
def test_a_notice_once_recorded_is_never_due_again(ladders: Telling, pauses: list[float], data: st.DataObject) -> None:
    incident, now = make_incident(), OPENED_AT
    for pause in pauses:
        now += pause
        due = due_notices(incident, ladders, now)
        recorded = {notice.id for notice in incident.notices}
        assert not recorded & {notice.notice_id for notice in due}
        incident = record(incident, data.draw(st.lists(st.sampled_from(due), unique=True)) if due else [], data.draw(STATES))
        if data.draw(st.booleans()):
            incident = replace(incident, resolved_at=now)


@given(LADDERS, PAUSES)
def test_a_step_without_repeat_gives_exactly_one_notice_however_time_is_walked(ladders: Telling, pauses: list[float]) -> None:
    incident, now = make_incident(), OPENED_AT
    for pause in (*pauses, 10_000.0):
        now += pause
        incident = record(incident, due_notices(incident, ladders, now))

    for index, step in enumerate(ladders.ladders[0].steps):
        told = [notice.id for notice in incident.notices if notice.id.startswith(f"i1/{index}/")]
        assert told == [f"i1/{index}/0"] if step.repeat_s is None else len(told) >= 1


@given(LADDERS, PAUSES, STATES)
def test_with_everything_recorded_the_next_moment_lies_ahead(ladders: Telling, pauses: list[float], state: str) -> None:
    incident, now = make_incident(), OPENED_AT
    for pause in pauses:
        now += pause
        incident = record(incident, due_notices(incident, ladders, now), state)
        coming = next_at(incident, ladders, now)
        assert coming is None or coming > now


@given(LADDERS, st.integers(1, 60))
def test_walking_from_moment_to_moment_meets_a_notice_at_each_and_misses_none(ladders: Telling, moments: int) -> None:
    incident = make_incident()
    now: float | None = next_at(incident, ladders, OPENED_AT)
    for _ in range(moments):
        if now is None:
            break
        due = due_notices(incident, ladders, now)
        assert due, now
        incident = record(incident, due)
        now = next_at(incident, ladders, now)

    for index in range(len(ladders.ladders[0].steps)):
        numbers = [int(notice.id.split("/")[2]) for notice in incident.notices if notice.id.startswith(f"i1/{index}/")]
        assert numbers == list(range(len(numbers)))


@given(LADDERS, PAUSES, PAUSES, st.data())
def test_after_its_resolution_each_route_that_was_told_hears_the_all_clear_once_and_nothing_else(
    ladders: Telling, before: list[float], after: list[float], data: st.DataObject
) -> None:
    incident, now = make_incident(), OPENED_AT
    for pause in before:
        now += pause
        incident = record(incident, due_notices(incident, ladders, now), data.draw(STATES))
    told = {notice.route for notice in incident.notices if notice.state == "sent"}
    incident = replace(incident, resolved_at=now)

    heard = []
    for pause in (0.0, *after):
        now += pause
        due = due_notices(incident, ladders, now)
        heard += shown(due)
        incident = record(incident, due, data.draw(STATES))

    assert heard == [(f"i1/resolved/{route}", route, "resolved") for route in sorted(told)]
    assert next_at(incident, ladders, now) is None


@given(LADDERS, PAUSES)
def test_a_route_hears_once_that_an_incident_opened(ladders: Telling, pauses: list[float]) -> None:
    incident, now, heard = make_incident(), OPENED_AT, []
    for pause in pauses:
        now += pause
        due = due_notices(incident, ladders, now)
        heard += [(notice.route, notice.event) for notice in due]
        incident = record(incident, due)

    for route in {route for route, _ in heard}:
        events = [event for heard_by, event in heard if heard_by == route]
        assert events == ["opened"] + ["reminder"] * (len(events) - 1)


def test_a_route_without_a_ladder_tells_at_once_and_after_half_an_hour_and_two_and_of_warnings_once() -> None:
    at_once = LadderStep("ops")

    assert usual_ladders(("ops",)) == (
        Ladder((at_once, LadderStep("ops", 1800.0), LadderStep("ops", 7200.0)), Severity.URGENT),
        Ladder((at_once, LadderStep("ops", 1800.0), LadderStep("ops", 7200.0)), Severity.ACTION),
        Ladder((at_once,), Severity.WARNING),
    )


@pytest.mark.parametrize("state", NoticeState)
def test_an_incident_is_not_settled_while_one_of_its_notices_is_under_way(state: NoticeState) -> None:
    cleared = Notice("i1/resolved/ops", "ops", state, OPENED_AT + 60, event=NoticeEvent.RESOLVED)
    incident = make_incident(resolved_at=OPENED_AT + 50, notices=(cleared,))

    assert is_settled(incident) == (state not in (NoticeState.SENDING, NoticeState.RETRYING))


@pytest.mark.parametrize("state", NoticeState)
def test_whoever_was_told_or_may_have_been_hears_that_it_is_over(state: NoticeState) -> None:
    told = Notice("i1/0/0", "ops", state, OPENED_AT, rung=Rung(0, 0))
    incident = make_incident(resolved_at=OPENED_AT + 50, over_at=OPENED_AT + 60, notices=(told,))

    due = [notice.event for notice in due_notices(incident, Telling(), OPENED_AT + 100)]

    assert (NoticeEvent.RESOLVED in due) == (state in (NoticeState.SENT, NoticeState.UNKNOWN))
