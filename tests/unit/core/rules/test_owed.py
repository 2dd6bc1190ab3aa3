"""What was urgent is told even when it is over: to each route that had not heard, once, in one notice that says both (P14)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.rules.test_escalation import OPENED_AT, make_incident, make_ladders, record, shown
from vigil.core.model.incident import Incident, LadderStep, Notice, NoticeEvent, NoticeState, Rung, Severity
from vigil.core.rules.escalation import due_notices, is_settled, next_at
from vigil.core.rules.notice import OVER, is_owed, why_unwanted

OVER_AT = OPENED_AT + 0.3
SURE_AT = OVER_AT + 11.0
LADDER = make_ladders(LadderStep("ops"), LadderStep("pager", after_s=1800, repeat_s=7200))
FIRST = ("i1/0/0", "ops", "opened")


def make_over(**changes: object) -> Incident:
    values = {"resolved_at": OVER_AT, "over_at": SURE_AT, "resolution": "alpha is running", "owed": True}
    return make_incident(**(values | changes))


def make_first(state: NoticeState, at: float = OPENED_AT, over: bool = False) -> Notice:
    return Notice("i1/0/0", "ops", state, at, event=NoticeEvent.OPENED, rung=Rung(0, 0), retry_at=at, over=over)


def test_what_was_over_before_anybody_heard_is_told_at_once_by_the_first_step_alone() -> None:
    over = make_over()

    assert next_at(over, LADDER, OVER_AT) == OVER_AT
    assert shown(due_notices(over, LADDER, OVER_AT)) == [FIRST]
    assert not is_settled(over)


def test_it_is_told_however_late_and_with_the_same_id() -> None:
    assert shown(due_notices(make_over(), LADDER, OPENED_AT + 1e6)) == [FIRST]


def test_a_step_that_was_due_while_it_lasted_is_told_too() -> None:
    over = make_over(resolved_at=OPENED_AT + 2000, over_at=OPENED_AT + 2011)

    assert shown(due_notices(over, LADDER, OPENED_AT + 3000)) == [FIRST, ("i1/1/0", "pager", "opened")]


def test_a_first_step_that_waits_tells_when_it_is_due_or_once_it_is_over_for_good() -> None:
    for after_s, told_at in ((2.0, OPENED_AT + 2.0), (1800.0, SURE_AT)):
        telling = make_ladders(LadderStep("ops", after_s=after_s))
        assert next_at(make_over(), telling, OVER_AT) == told_at
        assert due_notices(make_over(), telling, told_at - 0.1) == []
        assert shown(due_notices(make_over(), telling, told_at)) == [FIRST]


def test_who_heard_both_in_one_hears_no_all_clear_and_who_heard_the_first_alone_does() -> None:
    both = replace(make_over(), notices=(make_first(NoticeState.SENT, OVER_AT, over=True),))
    first = replace(make_over(), notices=(make_first(NoticeState.SENT),))

    assert (due_notices(both, LADDER, SURE_AT), next_at(both, LADDER, OVER_AT), is_settled(both)) == ([], None, True)
    assert shown(due_notices(first, LADDER, SURE_AT)) == [("i1/resolved/ops", "ops", "resolved")]


def test_who_heard_both_and_then_that_it_is_back_hears_the_all_clear() -> None:
    again = Notice("i1/again1/ops", "ops", NoticeState.SENT, OVER_AT + 20, event=NoticeEvent.AGAIN)
    back = replace(make_over(), notices=(make_first(NoticeState.SENT, OVER_AT, over=True), again))

    assert shown(due_notices(back, LADDER, SURE_AT)) == [("i1/resolved/ops", "ops", "resolved")]


@pytest.mark.parametrize("state", [NoticeState.RETRYING, NoticeState.FAILED, NoticeState.SENDING])
def test_a_notice_that_did_not_get_through_is_no_other_notice_when_it_is_over(state: NoticeState) -> None:
    tried = replace(make_over(), notices=(make_first(state),))
    due = due_notices(tried, LADDER, OVER_AT)

    assert shown(due) == ([FIRST] if state is NoticeState.RETRYING else [])
    assert not is_settled(tried)


def test_nobody_hears_late_of_what_can_wait_was_acknowledged_or_of_a_session_that_was_removed() -> None:
    for incident in (
        make_over(owed=False),
        make_over(owed=False, severity=Severity.ACTION),
        make_over(owed=False, hushed=True),
    ):
        assert due_notices(incident, LADDER, SURE_AT) == []
        assert is_settled(incident)


def test_a_route_that_heard_of_it_hears_no_first_notice_again() -> None:
    over = record(make_over(), due_notices(make_over(), LADDER, OVER_AT))

    assert why_unwanted(NoticeEvent.OPENED, "ops", over) == OVER
    assert why_unwanted(NoticeEvent.OPENED, "pager", over) is None
    assert why_unwanted(NoticeEvent.REMINDER, "pager", over) == OVER


@pytest.mark.parametrize("event", NoticeEvent)
def test_only_the_first_word_of_an_incident_is_owed_after_it(event: NoticeEvent) -> None:
    assert is_owed(event, "ops", make_over()) == (event in (NoticeEvent.OPENED, NoticeEvent.ESCALATED))
