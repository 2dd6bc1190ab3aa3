"""How sessions come to life: declared, in line, launched."""

from __future__ import annotations

import pytest

from tests.unit.builders import (
    ALWAYS,
    SITUATIONS,
    Stage,
    being_stopped_while_it_starts,
    crashed_and_coming_back,
    kinds,
    launch_failed,
    make_exit,
    make_launch,
    make_launched,
    make_process,
    make_spec,
    only_spawn,
    only_timer,
    starting,
    waiting_for_its_turn,
)
from vigil.core.effects import EndLaunch, Persist
from vigil.core.events import Declared, Exited, LaunchFailed, Withdrawn
from vigil.core.handlers.admission import PACE
from vigil.core.model.death import Cause
from vigil.core.model.reading import Axis
from vigil.core.model.session import State

# Declarations and their pace


def test_a_declared_session_is_launched_at_once() -> None:
    stage = Stage()

    effects = stage.machine.handle(Declared("s1", "alpha", make_spec(), "alice"), 1000.0)

    assert kinds(effects) == ["Persist", "Spawn"]
    assert stage.state() == "starting"
    assert only_spawn(effects).launch == make_launch(created_at=1000.0, woken_for="first")
    assert isinstance(effects[0], Persist)
    assert [entry.kind for entry in effects[0].log] == ["session.declared", "session.wake", "session.state"]
    assert effects[0].launches == (only_spawn(effects).launch,)
    assert stage.machine.find("alpha") == stage.session()


def test_a_declaration_that_never_became_durable_is_as_if_it_never_was() -> None:
    stage = starting()

    assert stage.machine.handle(Withdrawn("s1"), 1000.0) == []
    assert stage.machine.find("alpha") is None
    assert len([stage.declare(session_id=f"n{i}", name=f"n{i}") for i in range(PACE)]) == PACE
    assert all(stage.state(f"n{i}") == "starting" for i in range(PACE)), "it still took a launch's place"


def test_at_most_four_launches_start_at_once() -> None:
    stage = Stage()

    asked = [kinds(stage.declare(session_id=f"s{i}", name=f"n{i}")) for i in range(7)]

    assert asked == [["Spawn"]] * 4 + [[]] * 3
    assert [stage.state(f"s{i}") for i in range(7)] == ["starting"] * 4 + ["pending (pace)"] * 3


@pytest.mark.parametrize("outcome", ["launched", "failed"])
def test_the_next_in_line_is_launched_when_a_launch_is_over(outcome: str) -> None:
    stage = Stage()
    for i in range(6):
        stage.declare(session_id=f"s{i}", name=f"n{i}")

    event = make_launched("s2-1") if outcome == "launched" else LaunchFailed("s2-1", 1001.0, "no")
    spawn = only_spawn(stage.tell(event))

    assert spawn.session.id == "s4"
    assert stage.state("s5") == "pending (pace)"


def test_an_outcome_told_twice_lets_only_one_in() -> None:
    stage = Stage()
    for i in range(7):
        stage.declare(session_id=f"s{i}", name=f"n{i}")

    spawns = [kinds(stage.tell(make_launched("s2-1"))).count("Spawn") for _ in range(3)]

    assert spawns == [1, 0, 0]


@pytest.mark.parametrize("verb", ["stop", "rm"])
def test_who_left_the_line_is_not_launched(verb: str) -> None:
    stage = waiting_for_its_turn()
    stage.ask(verb)

    assert kinds(stage.tell(make_launched("other0-1"))) == []


def test_who_left_the_line_and_came_back_is_launched_once() -> None:
    stage = waiting_for_its_turn()
    stage.ask("stop")
    stage.ask("start")

    spawns = [kinds(stage.tell(make_launched(f"other{i}-1"))).count("Spawn") for i in range(PACE)]

    assert spawns == [1, 0, 0, 0]


@pytest.mark.parametrize("situation", ["crashed_and_coming_back", "coming_back", "being_restarted"])
def test_a_session_that_comes_back_waits_its_turn_too(situation: str) -> None:
    stage = SITUATIONS[situation]()
    for i in range(PACE):
        stage.declare(session_id=f"s{i + 2}", name=f"n{i}")
    if stage.session().state is State.ENDING:
        stage.exit(signal=15)

    assert kinds(stage.end()) == []
    assert stage.state() == "pending (pace)"
    assert only_spawn(stage.tell(make_launched("s2-1"))).launch.id == "s1-2"


# Launches


def test_a_launch_that_came_to_life_is_running() -> None:
    stage = starting()

    asked = stage.tell(make_launched(at=1001.5))

    assert kinds(asked) == []
    assert stage.state() == "running"
    launch = stage.launch()
    assert (launch.started_at, launch.process, launch.root, launch.server, launch.pane) == (
        1001.5,
        make_process(100),
        make_process(101),
        make_process(102),
        "%0",
    )
    assert stage.session().vitals.axes[Axis.PROCESS].value == "alive"
    assert stage.session().why == "up as pid 100"


def test_a_launch_of_a_session_with_charges_asks_to_be_told_when_it_is_stable() -> None:
    stage = crashed_and_coming_back()
    stage.end()

    timer = only_timer(stage.tell(make_launched("s1-2", at=2000.0)))

    assert (timer.kind, timer.at) == ("stable", 2000.0 + ALWAYS.reset_after_s)


def test_a_launch_that_failed_is_charged_and_whatever_came_of_it_is_ended() -> None:
    stage = starting(ALWAYS)

    asked = stage.tell(LaunchFailed("s1-1", 1002.0, "tmux is not installed"))

    assert kinds(asked) == ["SetTimer", "EndLaunch"]
    assert stage.state() == "crashed (backoff)"
    (death,) = stage.deaths
    assert (death.cause, death.charged, death.at) == (Cause.LAUNCH_FAILED, True, 1002.0)
    assert death.evidence[0].text == "tmux is not installed"
    assert stage.session().charges == 1


def test_a_launch_that_failed_stays_failed_where_nothing_comes_back() -> None:
    stage = launch_failed()

    assert stage.state() == "failed"
    assert "tmux" not in stage.session().why
    assert "no such file" in stage.session().why


def test_a_stop_while_a_launch_is_under_way_ends_what_came_to_life() -> None:
    stage = being_stopped_while_it_starts()

    (effect,) = stage.tell(make_launched())

    assert isinstance(effect, EndLaunch)
    assert effect.launch.process == make_process(), "its processes are known now"
    assert stage.state() == "ending"
    assert stage.intents[0].launch_id == "s1-1"
    stage.exit(signal=15)
    stage.end()
    assert stage.state() == "stopped"
    assert [death.cause for death in stage.deaths] == [Cause.OPERATOR]


def test_a_stop_while_a_launch_is_under_way_that_fails_is_a_stop() -> None:
    stage = being_stopped_while_it_starts(ALWAYS)

    assert kinds(stage.tell(LaunchFailed("s1-1", 1002.0, "no"))) == ["EndLaunch"]
    stage.end()

    assert stage.state() == "stopped"
    assert len(stage.deaths) == 1


@pytest.mark.parametrize(("verb", "state"), [("rm", "removed"), ("restart", "starting"), ("start", "starting")])
def test_what_was_asked_last_while_a_launch_was_under_way_is_done(verb: str, state: str) -> None:
    stage = being_stopped_while_it_starts()
    stage.ask(verb)
    stage.tell(make_launched())
    stage.exit(signal=15)

    stage.end()

    assert stage.state() == state


def test_an_exit_that_is_told_before_its_launch_counts_once() -> None:
    stage = starting(ALWAYS)
    stage.exit(exit_code=1)

    assert stage.tell(make_launched()) == []
    assert stage.state() == "crashed (backoff)"
    assert len(stage.deaths) == 1


def test_the_place_of_a_launch_whose_exit_came_first_is_free_with_that_exit() -> None:
    stage = waiting_for_its_turn()

    assert only_spawn(stage.tell(Exited(make_exit("other0-1", exit_code=1)))).session.id == "s1"
    assert stage.tell(make_launched("other0-1")) == []
