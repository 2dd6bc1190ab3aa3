"""Each notice goes out once, in time, whatever the loop, the store or a route do (P6, P12)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

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
from vigil.core.model.upgrade import upgraded_notice
from vigil.core.rules.escalation import Due, usual_ladders
from vigil.daemon.base.clock import Clock
from vigil.daemon.tell.clock import Heartbeat
from vigil.daemon.tell.escalator import RETRY_S, Escalator
from vigil.daemon.tell.known import OVER, KnownIncidents

WAIT_S = 20.0
AT_ONCE = Telling((Ladder((LadderStep("ops"),)),))


class Stage:
    """An escalator on a real heartbeat, and what it handed out, when."""

    def __init__(self, telling: Telling) -> None:
        self.heartbeat = Heartbeat()
        self.handed: list[tuple[float, Due]] = []
        self.refuses: Callable[[Due], bool] = lambda _: False
        self.skipped_s = 0.0  # time that passed while the monotonic clock stood still
        self._clock = Clock()
        self._telling = telling
        self.escalator = self.begin()
        self.heartbeat.start()

    def begin(self) -> Escalator:
        """Return an escalator that knows nothing yet; it takes the place of one before."""
        self.known = KnownIncidents()
        escalator = Escalator(self.known, self.heartbeat, self.now, self._hand)
        escalator.use(self._telling)
        return escalator

    def now(self) -> float:
        return self._clock.now() + self.skipped_s

    def _hand(self, due: Due) -> None:
        if self.refuses(due):
            raise ValueError("no such route")
        self.handed.append((self.now(), due))

    @property
    def ids(self) -> list[str]:
        return [due.notice_id for _, due in self.handed]

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(due.route, due.event) for _, due in self.handed]

    def wait_for(self, *ids: str) -> None:
        """Wait until exactly these notices were handed out, in this order."""
        self.wait_until(lambda: len(self.ids) >= len(ids))
        assert self.ids == list(ids)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < deadline, self.ids
            time.sleep(0.01)

    def settle(self) -> None:
        """Wait until the heartbeat has been through all that was due when this was asked."""
        passed = threading.Event()
        self.heartbeat.at("settle", self.heartbeat.monotonic(), passed.set)
        assert passed.wait(WAIT_S)

    def open(self, **changes: Any) -> Incident:
        values: dict[str, Any] = {
            "id": "i1",
            "key": "s1/stuck",
            "kind": IncidentKind.STUCK,
            "severity": Severity.URGENT,
            "session_id": "s1",
            "session": "alpha",
            "opened_at": self.now(),
            "why": "its server does not answer",
        }
        return Incident(**(values | changes))


def make_notice(notice_id: str, route: str, state: str = "sent") -> Notice:
    return upgraded_notice(Notice(notice_id, route, NoticeState(state), 0.0))


@pytest.fixture
def make_stage() -> Iterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(*steps: LadderStep) -> Stage:
        stages.append(Stage(Telling((Ladder(steps),))))
        return stages[-1]

    yield make
    for stage in stages:
        stage.heartbeat.close()


MakeStage = Callable[..., Stage]


def test_each_step_goes_out_at_its_moment(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script", after_s=0.3), LadderStep("mail", after_s=0.8))
    incident = stage.open()

    stage.escalator.tell(incident)

    stage.wait_for("i1/0/0", "i1/1/0", "i1/2/0")
    for (at, due), after_s in zip(stage.handed, (0, 0.3, 0.8), strict=True):
        assert 0 <= at - incident.opened_at - after_s < 1, due
    assert stage.events == [("ops", "opened"), ("script", "opened"), ("mail", "opened")]


def test_nobody_reacts_for_three_hours_and_exactly_the_ladders_notices_come_at_their_times(make_stage: MakeStage) -> None:
    stage = make_stage()
    telling = Telling(usual_ladders(("ops",)))
    incident = stage.open()
    stage.escalator.tell(incident)
    came: dict[str, float] = {}
    for minute in (0.0, 29.9, 30.0, 31.0, 119.9, 120.0, 121.0, 180.0):
        stage.skipped_s = minute * 60
        stage.escalator.use(telling)  # looks at the clock anew
        stage.settle()
        came |= {notice_id: minute for notice_id in stage.ids if notice_id not in came}

    assert came == {"i1/0/0": 0.0, "i1/1/0": 30.0, "i1/2/0": 120.0}
    assert stage.events == [("ops", "opened"), ("ops", "reminder"), ("ops", "reminder")]


def test_a_reminder_comes_on_its_schedule(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", repeat_s=0.4))
    incident = stage.open()

    stage.escalator.tell(incident)

    stage.wait_until(lambda: len(stage.handed) >= 3)
    numbers = [int(notice_id.removeprefix("i1/0/")) for notice_id in stage.ids]
    assert numbers == sorted(set(numbers))  # a busy machine may skip one; none comes twice or early
    for (at, _), number in zip(stage.handed, numbers, strict=False):
        assert 0 <= at - incident.opened_at - 0.4 * number < 1
    assert {event for _, event in stage.events[1:]} == {"reminder"}


def test_an_incident_told_twice_is_handed_out_once(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script", after_s=0.2))
    incident = stage.open()

    for count in range(1, 50):
        stage.escalator.tell(replace(incident, count=count))
    stage.wait_for("i1/0/0", "i1/1/0")
    stage.escalator.tell(replace(incident, count=50))
    stage.settle()

    assert stage.ids == ["i1/0/0", "i1/1/0"]


def test_a_route_gets_the_newest_version_as_it_was_told(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("ops", after_s=30))
    incident = stage.open()
    stage.escalator.tell(incident)
    stage.wait_for("i1/0/0")

    stage.escalator.tell(replace(incident, count=7))
    stage.skipped_s = 30.0

    stage.wait_for("i1/0/0", "i1/1/0")
    assert stage.handed[1][1] == Due("i1/1/0", "ops", NoticeEvent.REMINDER, replace(incident, count=7), rung=Rung(1, 0))


def test_an_acknowledged_incident_is_not_mentioned_again(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script", after_s=30))
    incident = stage.open()
    stage.escalator.tell(incident)
    stage.wait_for("i1/0/0")

    stage.escalator.tell(replace(incident, acked_at=stage.now()))
    stage.skipped_s = 60.0
    stage.escalator.tell(stage.open(id="i2"))

    stage.wait_until(lambda: len(stage.ids) >= 2)
    stage.settle()
    assert "i1/1/0" not in stage.ids


def test_ladders_that_are_replaced_count_at_once(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=3600))
    stage.escalator.tell(stage.open())

    stage.escalator.use(AT_ONCE)

    stage.wait_for("i1/0/0")


def test_what_was_forgotten_is_not_handed_out(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=30))
    stage.escalator.tell(stage.open())
    stage.escalator.tell(stage.open(id="i2"))

    stage.escalator.forget("i1")
    stage.escalator.forget("never told")
    stage.skipped_s = 60.0

    stage.wait_for("i2/0/0")
    stage.settle()
    assert stage.ids == ["i2/0/0"]


# The all-clear


def test_a_resolved_incident_gets_its_all_clear_also_when_no_record_has_come_back(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script", after_s=3600))
    incident = stage.open()
    stage.escalator.tell(incident)
    stage.wait_for("i1/0/0")

    stage.escalator.tell(replace(incident, resolved_at=stage.now()))

    stage.wait_for("i1/0/0", "i1/resolved/ops")


def test_records_that_come_back_after_the_all_clear_bring_no_second_one(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"))
    incident = stage.open()
    stage.escalator.tell(incident)
    stage.wait_for("i1/0/0")
    resolved = replace(incident, resolved_at=stage.now())
    stage.escalator.tell(resolved)
    stage.wait_for("i1/0/0", "i1/resolved/ops")

    stage.escalator.tell(replace(resolved, notices=(make_notice("i1/0/0", "ops"),)))
    stage.settle()

    assert stage.ids == ["i1/0/0", "i1/resolved/ops"]


def test_a_version_that_was_overtaken_by_the_resolution_opens_nothing_again(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=30))
    incident = stage.open()
    stage.escalator.tell(incident)
    stage.escalator.tell(replace(incident, resolved_at=stage.now()))

    stage.escalator.tell(incident)
    stage.skipped_s = 60.0
    stage.escalator.use(AT_ONCE)
    stage.settle()

    assert stage.ids == []


def test_a_route_that_could_not_be_reached_gets_no_all_clear(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script"))
    incident = stage.open()
    stage.escalator.tell(incident)
    stage.wait_for("i1/0/0", "i1/1/0")

    failed = (make_notice("i1/0/0", "ops", state="failed"),)
    stage.escalator.tell(replace(incident, resolved_at=stage.now(), notices=failed))

    stage.wait_for("i1/0/0", "i1/1/0", "i1/resolved/script")
    stage.settle()
    assert len(stage.ids) == 3


def test_an_incident_that_was_over_before_anybody_heard_of_it_stays_silent(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=3600))
    incident = stage.open()
    stage.escalator.tell(incident)

    stage.escalator.tell(replace(incident, resolved_at=stage.now()))
    stage.escalator.use(AT_ONCE)
    stage.settle()

    assert stage.ids == []


def test_what_is_remembered_of_incidents_that_are_over_is_bounded(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"))

    for number in range(OVER + 10):
        stage.escalator.tell(stage.open(id=f"i{number}", resolved_at=stage.now()))

    assert len(stage.known._over) == OVER
    assert "i9" not in stage.known._over
    assert stage.known.all() == []


# A new life


def test_a_restart_hands_out_only_what_is_missing_once(make_stage: MakeStage) -> None:
    steps = (
        LadderStep("ops"),
        LadderStep("script", after_s=1800),
        LadderStep("mail", after_s=60, repeat_s=600),
        LadderStep("boss", after_s=7200),
    )
    stage = make_stage(*steps)
    incident = stage.open(opened_at=stage.now() - 3630, notices=(make_notice("i1/0/0", "ops"),))

    stage.escalator.tell(incident)
    stage.escalator.tell(incident)

    stage.wait_for("i1/1/0", "i1/2/5")
    stage.settle()
    assert stage.events == [("script", "opened"), ("mail", "opened")]


def test_a_restart_gives_the_all_clear_that_is_missing_to_those_who_were_told(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script"))
    notices = (make_notice("i1/0/0", "ops"), make_notice("i1/1/0", "script"), make_notice("i1/resolved/ops", "ops"))
    incident = stage.open(opened_at=stage.now() - 3600, resolved_at=stage.now() - 60, notices=notices)

    stage.escalator.tell(incident)
    stage.escalator.tell(incident)

    stage.wait_for("i1/resolved/script")
    stage.settle()
    assert len(stage.ids) == 1


def test_a_life_that_ends_between_two_notices_costs_neither_of_them(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script", after_s=30))
    incident = stage.open()
    stage.escalator.tell(incident)
    stage.wait_for("i1/0/0")

    after = stage.begin()
    after.tell(replace(incident, notices=(make_notice("i1/0/0", "ops"),)))
    stage.skipped_s = 30.0

    stage.wait_for("i1/0/0", "i1/1/0")


# Whatever happens


async def test_a_notice_goes_out_in_time_while_the_loop_is_blocked(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=0.3))
    incident = stage.open()
    stage.escalator.tell(incident)
    await asyncio.sleep(0)

    time.sleep(1.6)  # noqa: ASYNC251 - the blockage itself

    assert stage.ids == ["i1/0/0"]
    assert stage.handed[0][0] - incident.opened_at - 0.3 < 1


def test_a_notice_that_came_due_while_the_host_slept_goes_out_when_it_wakes(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=3600))
    stage.escalator.tell(stage.open())
    stage.settle()

    stage.skipped_s = 3600.0
    woke_at = stage.now()

    stage.wait_for("i1/0/0")
    assert stage.handed[0][0] - woke_at < 1


def test_a_route_that_refuses_costs_the_others_nothing_and_is_tried_again(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("bad"), LadderStep("ops"), LadderStep("script", after_s=0.1))
    refused: list[str] = []

    def refuses(due: Due) -> bool:
        if due.route == "bad" and len(refused) < 2:
            refused.append(due.notice_id)
            return True
        return False

    stage.refuses = refuses
    with capture_logs() as lines:
        stage.escalator.tell(stage.open())
        stage.wait_for("i1/1/0", "i1/2/0")
        for tries in (1, 2):
            stage.wait_until(lambda tries=tries: len(lines) == tries)  # type: ignore[misc]
            stage.skipped_s += RETRY_S
        stage.wait_for("i1/1/0", "i1/2/0", "i1/0/0")

    assert refused == ["i1/0/0", "i1/0/0"]
    assert stage.events == [("ops", "opened"), ("script", "opened"), ("bad", "opened")]
    assert {line["event"] for line in lines} == {"heartbeat call failed"}


def test_an_incident_that_resolves_before_its_refused_notice_is_tried_again_ends_without_a_word(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("bad"))
    tried: list[str] = []

    def refuses(due: Due) -> bool:
        tried.append(due.notice_id)
        return True

    stage.refuses = refuses
    incident = stage.open()
    with capture_logs() as lines:
        stage.escalator.tell(incident)
        stage.wait_until(lambda: len(lines) == 1)
        stage.escalator.tell(replace(incident, resolved_at=stage.now()))
        stage.skipped_s = RETRY_S
        stage.wait_until(lambda: not stage.known._open)

    assert tried == ["i1/0/0"]


def test_a_route_that_hangs_keeps_nobody_from_telling(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"))
    hanging, go_on = threading.Event(), threading.Event()

    def hang(due: Due) -> bool:
        if due.incident.id == "i1":
            hanging.set()
            go_on.wait(WAIT_S)
        return False

    stage.refuses = hang
    stage.escalator.tell(stage.open())
    assert hanging.wait(WAIT_S)

    told = threading.Thread(target=lambda: stage.escalator.tell(stage.open(id="i2")), daemon=True)
    told.start()
    told.join(WAIT_S / 2)  # before the route gives up hanging

    assert not told.is_alive()
    go_on.set()
    stage.wait_for("i1/0/0", "i2/0/0")


def test_an_incident_forgotten_while_its_notice_is_handed_out_disturbs_no_other(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=30))
    hanging, go_on = threading.Event(), threading.Event()

    def hang(due: Due) -> bool:
        if due.event == "resolved":
            hanging.set()
            go_on.wait(WAIT_S)
        return False

    stage.refuses = hang
    stage.escalator.tell(stage.open(id="i2"))
    stage.escalator.tell(stage.open(resolved_at=stage.now(), notices=(make_notice("i1/0/0", "ops"),)))
    assert hanging.wait(WAIT_S)

    stage.escalator.forget("i1")
    go_on.set()
    stage.skipped_s = 30.0

    stage.wait_for("i1/resolved/ops", "i2/0/0")


def test_an_incident_told_again_and_again_is_planned_once(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=3600))
    incident = stage.open()

    for count in range(1, 100):
        stage.escalator.tell(replace(incident, count=count))

    assert len(stage.escalator._coming) == 1


def test_a_thousand_incidents_at_once_are_all_in_time(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops", after_s=1.0), LadderStep("script", after_s=1.5))
    incidents = [stage.open(id=f"i{number}") for number in range(1000)]

    for incident in incidents:
        stage.escalator.tell(incident)
    stage.wait_until(lambda: len(stage.handed) == 2000)
    stage.settle()

    assert len(set(stage.ids)) == len(stage.ids) == 2000
    for at, due in stage.handed:
        after_s = 1.0 if due.route == "ops" else 1.5
        assert 0 <= at - due.incident.opened_at - after_s < 1


def test_many_threads_may_tell_and_each_notice_still_goes_out_once(make_stage: MakeStage) -> None:
    stage = make_stage(LadderStep("ops"), LadderStep("script", after_s=0.1))
    incidents = [stage.open(id=f"i{number}") for number in range(50)]

    def tell_all() -> None:
        for incident in incidents:
            stage.escalator.tell(incident)
        for incident in incidents:
            stage.escalator.use(Telling((Ladder((LadderStep("ops"), LadderStep("script", after_s=0.1))),)))
            stage.escalator.tell(replace(incident, count=2))

    threads = [threading.Thread(target=tell_all, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    stage.wait_until(lambda: len(stage.handed) >= 100)
    stage.settle()

    assert sorted(stage.ids) == sorted(f"{incident.id}/{step}/0" for incident in incidents for step in (0, 1))
