"""Adopted sessions: Vigil takes over what was started elsewhere, and gives it back without a signal to anybody."""

from __future__ import annotations

from tests.unit.builders import Stage, kinds, make_fact, make_launch, make_process, make_session, running
from vigil.core.effects import Release
from vigil.core.events import Adopted
from vigil.core.model.launch import ForeignSession
from vigil.core.model.reading import Axis

THEIRS = ForeignSession("/tmp/tmux-1000/default", "$1", "theirs")


def adopted() -> Stage:
    stage = Stage()
    launch = make_launch(host=THEIRS, process=make_process(), started_at=900.0)
    stage.tell(Adopted(make_session(launch=launch), (make_fact(at=1000.0),), "alice"))
    return stage


def test_an_adopted_session_is_durable_with_what_was_read_of_it_and_nothing_is_done_to_it() -> None:
    stage = adopted()

    assert stage.state() == "running"
    assert stage.durable["s1"].launch == stage.launch()
    assert stage.session().vitals.shows(Axis.PROCESS) == "alive"
    assert stage.log == ["session.adopted"]


def test_a_released_session_is_forgotten_and_lives_on() -> None:
    stage = adopted()
    launch = stage.launch()

    asked = stage.ask("release")

    assert Release(launch) in asked
    assert "EndLaunch" not in kinds(asked)
    assert (stage.state(), stage.durable) == ("removed", {})
    assert "session.released" in stage.log


def test_only_what_was_adopted_is_released() -> None:
    stage = running()

    assert kinds(stage.ask("release")) == []
    assert stage.state() == "running"
