"""Delivered counts, tried does not; what may have arrived is tried once more at most (P12)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.core.model.incident import Incident, IncidentKind, Ladder, LadderStep, Notice, NoticeState, Rung, Severity, Telling
from vigil.core.rules.escalation import due_notices, next_at
from vigil.core.rules.notice import (
    Attempt,
    RoutePatience,
    begun,
    cancelled,
    fate_of,
    interrupted,
    pause_s,
)

NOW = 1_700_000_000.0
PATIENCE = RoutePatience(attempts=4, pause_s=5.0)
GONE = Attempt(False, "no route to host")


def make_notice(state: NoticeState = NoticeState.SENDING, attempts: int = 1, unsure: int = 0) -> Notice:
    return Notice("i1/0/0", "ops", state, NOW, attempts=attempts, unsure=unsure, rung=Rung(0, 0))


@pytest.mark.parametrize(
    ("attempts", "unsure", "attempt", "state"),
    [
        (1, 0, Attempt(True), NoticeState.SENT),
        (4, 1, Attempt(True), NoticeState.SENT),
        (1, 0, GONE, NoticeState.RETRYING),
        (3, 0, GONE, NoticeState.RETRYING),
        (4, 0, GONE, NoticeState.FAILED),
        (1, 0, Attempt(False, "HTTP 401", permanent=True), NoticeState.FAILED),
        (1, 0, Attempt(False, "no answer in 30 s", unsure=True), NoticeState.RETRYING),
        (2, 1, Attempt(False, "no answer in 30 s", unsure=True), NoticeState.UNKNOWN),
        (2, 1, GONE, NoticeState.RETRYING),
    ],
)
def test_what_becomes_of_a_notice(attempts: int, unsure: int, attempt: Attempt, state: NoticeState) -> None:
    fate = fate_of(make_notice(attempts=attempts, unsure=unsure), attempt, PATIENCE, NOW, jitter=0.0)

    assert (fate.state, fate.why) == (state, attempt.why)
    assert (fate.retry_at is not None) == (state == NoticeState.RETRYING)


def test_who_took_a_notice_is_kept_with_it_until_all_have_it() -> None:
    once = fate_of(make_notice(), Attempt(False, took=("a", "b")), PATIENCE, NOW, jitter=0.0)
    again = fate_of(begun(once, NOW), Attempt(False, took=("c",)), PATIENCE, NOW, jitter=0.0)

    assert (again.state, again.took) == (NoticeState.RETRYING, ("a", "b", "c"))


@pytest.mark.parametrize(("attempts", "pause"), [(1, 5.0), (2, 10.0), (3, 20.0), (8, 600.0), (10_000, 600.0)])
def test_pauses_grow_up_to_ten_minutes_and_vary_by_a_fifth(attempts: int, pause: float) -> None:
    assert pause_s(attempts, PATIENCE, 0.0) == pause
    assert pause_s(attempts, PATIENCE, 1.0) == pytest.approx(1.2 * pause)
    assert pause_s(attempts, PATIENCE, -1.0) == pytest.approx(0.8 * pause)


def test_what_was_being_sent_when_the_daemon_ended_is_tried_once_more_and_not_again() -> None:
    once = interrupted(make_notice(), NOW)
    assert (once.state, once.retry_at, once.unsure) == (NoticeState.RETRYING, NOW, 1)

    twice = interrupted(begun(once, NOW), NOW + 1)
    assert (twice.state, twice.unsure, twice.attempts) == (NoticeState.UNKNOWN, 2, 2)


@pytest.mark.parametrize(
    "state", [NoticeState.SENT, NoticeState.RETRYING, NoticeState.FAILED, NoticeState.UNKNOWN, NoticeState.CANCELLED]
)
def test_the_end_of_a_daemon_changes_nothing_that_was_not_being_sent(state: NoticeState) -> None:
    assert interrupted(make_notice(state), NOW) == make_notice(state)


@given(st.lists(st.sampled_from(["arrives", "lost", "killed before", "killed after", "no answer"]), max_size=30))
def test_whatever_happens_nobody_is_told_the_same_more_than_twice(happens: list[str]) -> None:
    notice, arrived = replace(make_notice(NoticeState.RETRYING), attempts=0), 0
    for what in happens:
        if notice.state != NoticeState.RETRYING:
            break
        notice = begun(notice, NOW)
        arrived += what in ("arrives", "killed after", "no answer")
        if what.startswith("killed"):
            notice = interrupted(notice, NOW)
        else:
            attempt = Attempt(what == "arrives", unsure=what == "no answer")
            notice = fate_of(notice, attempt, RoutePatience(attempts=100), NOW, 0.0)

    assert arrived <= 2
    assert notice.state != NoticeState.SENT or arrived >= 1


# As the ladder sees it


TELLING = Telling((Ladder((LadderStep("ops", repeat_s=60.0),)),))


def make_incident(*notices: Notice) -> Incident:
    return Incident(
        "i1", "s1/stuck", IncidentKind.STUCK, Severity.URGENT, "s1", "alpha", NOW, "its server hangs", notices=notices
    )


def test_a_notice_that_failed_for_now_is_due_again_at_its_moment_under_its_own_id() -> None:
    incident = make_incident(replace(make_notice(NoticeState.RETRYING), retry_at=NOW + 5))

    assert due_notices(incident, TELLING, NOW + 4) == []
    assert next_at(incident, TELLING, NOW + 4) == NOW + 5
    (due,) = due_notices(incident, TELLING, NOW + 5)
    assert (due.notice_id, due.event, due.before) == ("i1/0/0", "opened", incident.notices[0])


def test_a_repeat_takes_the_place_of_what_could_not_be_delivered() -> None:
    incident = make_incident(replace(make_notice(NoticeState.RETRYING), retry_at=NOW + 59))

    assert [due.notice_id for due in due_notices(incident, TELLING, NOW + 60)] == ["i1/0/1"]


@pytest.mark.parametrize("change", [{"acked_at": NOW + 1}, {"resolved_at": NOW + 1}])
def test_what_somebody_knows_or_what_is_over_is_not_tried_again(change: dict[str, float]) -> None:
    incident = replace(make_incident(replace(make_notice(NoticeState.RETRYING), retry_at=NOW + 5)), **change)  # type: ignore[arg-type]

    assert due_notices(incident, TELLING, NOW + 100) == []
    assert next_at(incident, TELLING, NOW + 1) is None


def test_only_what_waits_can_be_cancelled() -> None:
    assert cancelled(replace(make_notice(NoticeState.RETRYING), retry_at=NOW), "it is over").state == NoticeState.CANCELLED
    assert cancelled(make_notice(NoticeState.SENT), "it is over") == make_notice(NoticeState.SENT)
