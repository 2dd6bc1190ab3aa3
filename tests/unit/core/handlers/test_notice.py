"""What became of notices is kept with their incident, and a route that gives up is an incident too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.builders import Stage, running
from tests.unit.incidents import HOLDS, OVER, last_told, only_incident, open_keys, told, waits
from vigil.core.effects import Effect
from vigil.core.events import Acked, Configured, Notified, Reached
from vigil.core.handlers.notice import NOTICES_KEPT
from vigil.core.model.incident import Incident, IncidentKind, Ladder, LadderStep, Notice, NoticeState, Rung, Severity, Telling
from vigil.core.model.upgrade import upgraded_notice
from vigil.core.rules.escalation import due_notices, steps_of
from vigil.core.rules.incident import incident_of


def make_notice(notice_id: str = "n1", state: str = "sent", at: float = 1100.0) -> Notice:
    return Notice(notice_id, "desk", NoticeState(state), at)


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


def test_that_a_notice_is_tried_is_not_news_once_it_is_known_what_became_of_it() -> None:
    stage = Stage()
    stage.tell(HOLDS)
    incident = only_incident(stage)

    stage.tell(Notified(incident.id, make_notice()), Notified(incident.id, make_notice(state="sending", at=1099.0)))
    assert only_incident(stage).notices == (make_notice(),)

    again = replace(make_notice(state="sending", at=1130.0), attempts=2)
    stage.tell(Notified(incident.id, again))
    assert only_incident(stage).notices == (again,)


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


# Routes that do not deliver


def fail(stage: Stage, incident: Incident, route: str, state: str = "failed") -> list[Effect]:
    notice = Notice(f"{incident.id}/0/0", route, NoticeState(state), stage.now, "exit 1", attempts=3, rung=Rung(0, 0))
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


TELLING = Telling((Ladder((LadderStep("ops"), LadderStep("ops", 1800.0))),), routes=("ops",))


def given_up(state: str = "failed", attempts: int = 3) -> tuple[Stage, Incident]:
    """A session waits for a human, and the only route did not take that."""
    stage = running()
    stage.tell(Configured(("ops",)))
    incident = last_told(waits(stage, True))
    first, became = f"{incident.id}/0/0", NoticeState(state)
    notice = Notice(first, "ops", became, stage.now, "exit 1", attempts=attempts, rung=Rung(0, 0))
    stage.tell(Notified(incident.id, notice))
    return stage, incident


def due(stage: Stage) -> list[str]:
    newest = stage.machine.incidents.get("s1/needs-input")
    return [] if newest is None else [one.notice_id for one in due_notices(newest, TELLING, stage.now)]


def deliver(stage: Stage, incident: Incident, notice_id: str, **changes: Any) -> None:
    before = next((one for one in stage.incidents[incident.id].notices if one.id == notice_id), None)
    before = before or upgraded_notice(Notice(notice_id, "ops", NoticeState.SENT, stage.now))
    now: dict[str, Any] = {"state": NoticeState.SENT, "at": stage.now} | changes
    stage.tell(Notified(incident.id, replace(before, **now)))


def test_what_a_route_gave_up_is_told_once_when_it_delivers_again() -> None:
    stage, incident = given_up()
    stage.now += 600
    assert due(stage) == []

    stage.tell(Reached("ops"))

    assert due(stage) == [f"{incident.id}/0/0"]
    assert "incident.told-after-all" in stage.log
    deliver(stage, incident, f"{incident.id}/0/0", attempts=4)
    stage.tell(Reached("ops"))
    assert due(stage) == []


def test_what_fails_again_after_that_stays_given_up() -> None:
    stage, incident = given_up()
    stage.tell(Reached("ops"))
    deliver(stage, incident, f"{incident.id}/0/0", state="failed", attempts=4)
    assert "route-ops/undelivered" in open_keys(stage)

    stage.tell(Reached("ops"))

    assert due(stage) == []


@pytest.mark.parametrize("what", ["acked", "over", "old", "unsure", "told since"])
def test_what_nobody_needs_any_more_or_may_have_heard_is_not_told_after_all(what: str) -> None:
    stage, incident = given_up("unknown" if what == "unsure" else "failed")
    stage.now += 2 * 86400 if what == "old" else 60
    if what == "acked":
        stage.tell(Acked(incident.id, "alice"))
    elif what == "over":
        waits(stage, False)
    elif what == "told since":  # by the next step, and that is also how the route is known to deliver
        deliver(stage, incident, f"{incident.id}/1/0")

    stage.tell(Reached("ops"))

    assert f"{incident.id}/0/0" not in due(stage)
    assert "incident.told-after-all" not in stage.log


def test_that_a_route_does_not_deliver_is_told_by_the_others() -> None:
    about = replace(incident_of(IncidentKind.UNDELIVERED, None, "ops does not deliver", 1000.0), about=("ops",))
    ladder = Ladder((LadderStep("ops"), LadderStep("mail", 60.0)), severity=Severity.ACTION)

    assert steps_of(about, Telling((ladder,), routes=("ops", "mail"))) == (LadderStep("mail", 0.0),)
    assert steps_of(about, Telling((), routes=("ops", "mail", "phone"))) == (LadderStep("mail"), LadderStep("phone"))
    assert steps_of(about, Telling((Ladder((), kind=IncidentKind.UNDELIVERED),), routes=("ops", "mail"))) == ()


def test_what_was_being_sent_when_the_daemon_ended_is_sent_again_and_what_waited_goes_on() -> None:
    stage = running()
    incident = last_told(waits(stage, True))
    stage.tell(Notified(incident.id, Notice(f"{incident.id}/0/0", "ops", NoticeState.SENDING, stage.now)))

    seen = last_told(stage.restart())

    (notice,) = seen.notices
    assert (notice.state, notice.unsure, notice.retry_at) == ("retrying", 1, stage.now)
