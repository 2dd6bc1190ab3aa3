"""What is read of a launch is kept with its time, and never concluded from by itself."""

from __future__ import annotations

import pytest

from tests.unit.builders import SITUATIONS, crashed, failed, kinds, running
from vigil.core.effects import Persist
from vigil.core.events import Closed, Noted, Observed
from vigil.core.machine import Machine
from vigil.core.model.reading import Axis, AxisValue, Fact


def test_a_reading_says_since_when_it_shows_what_it_shows() -> None:
    stage = running()

    def see(value: str, at: float) -> None:
        stage.tell(Observed("s1-1", (Fact(Axis.SERVER, AxisValue(value), "ping", at),)))

    see("alive", 1101.0)
    see("wedged", 1102.0)
    see("wedged", 1103.0)

    reading = stage.session().vitals.axes[Axis.SERVER]
    assert (reading.value, reading.since, reading.observed_at, reading.source) == ("wedged", 1102.0, 1103.0, "ping")


@pytest.mark.parametrize("conclusive", [False, True])
def test_what_is_conclusively_dead_is_not_brought_back_by_any_later_word(conclusive: bool) -> None:
    stage = running()

    stage.tell(
        Observed("s1-1", (Fact(Axis.SERVER, AxisValue.DEAD, "pidfd", 1101.0, conclusive=True),)),
        Observed("s1-1", (Fact(Axis.SERVER, AxisValue.ALIVE, "ping", 1102.0, conclusive),)),
    )

    assert stage.session().vitals.axes[Axis.SERVER].value == "dead"


@pytest.mark.parametrize("situation", ["running", "suspect", "being_stopped"])
def test_a_reading_never_concludes_and_never_writes(situation: str) -> None:
    facts = tuple(Fact(axis, AxisValue.DEAD, "procfs", 1200.0, conclusive=True) for axis in Axis)
    stage = SITUATIONS[situation]()
    before = stage.session()

    asked = stage.machine.handle(Observed("s1-1", facts), 1200.0)

    assert kinds(asked) == ([] if situation == "being_stopped" else ["Conclude"])  # how it ended is to be found out
    assert (stage.session().state, stage.session().last_death) == (before.state, before.last_death)


def test_a_reading_tells_who_is_attached_and_when_it_was_active_last() -> None:
    stage = running()
    stage.now = 1200.0

    stage.tell(Observed("s1-1", (), attached=2, active_at=1150.0), Observed("s1-1", (), attached=None, active_at=1120.0))

    assert (stage.session().vitals.attached, stage.session().last_activity_at) == (2, 1150.0)


def test_a_dead_launch_is_not_read_any_more() -> None:
    stage = crashed()
    before = stage.session()

    stage.tell(Observed("s1-1", (Fact(Axis.PROCESS, AxisValue.ALIVE, "procfs", 1200.0),), attached=1))

    assert stage.session() == before


def test_what_is_left_of_a_closed_runtime_is_kept_and_durable() -> None:
    stage = failed()

    stage.tell(Closed("s1-1", (Fact(Axis.SERVER, AxisValue.DEAD, "procfs", 1200.0, conclusive=True),)))

    assert stage.durable["s1"].vitals.axes[Axis.SERVER].value == "dead"
    assert stage.state() == "failed"


def test_a_note_goes_into_the_log_of_no_session() -> None:
    (effect,) = Machine().handle(Noted("keeper.died", (("pid", 7),)), 1000.0)

    assert isinstance(effect, Persist)
    assert [(entry.kind, entry.session_id, dict(entry.data)) for entry in effect.log] == [("keeper.died", None, {"pid": 7})]
