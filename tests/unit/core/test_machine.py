"""The machine as a whole: its tables, its fences, and that what is durable comes first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.builders import (
    ALWAYS,
    SITUATIONS,
    being_restarted,
    crashed_and_coming_back,
    make_exit,
    make_launched,
    only_spawn,
    running,
    situations,
)
from vigil.core.effects import CloseLaunch, Persist, Spawn, TimerKind
from vigil.core.events import (
    Asked,
    Closed,
    Ended,
    Event,
    Exited,
    Interrupted,
    LaunchFailed,
    Noted,
    Observed,
    Orphaned,
    Resumed,
    TimerFired,
)
from vigil.core.handlers.operator import VERBS
from vigil.core.machine import HANDLERS, Machine
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.session import State

# Tables are whole


def test_every_kind_of_event_has_a_handler() -> None:
    assert set(HANDLERS) == set(Event.__args__)


def test_the_situations_are_in_every_state_there_is() -> None:
    assert {build().session().state for build in SITUATIONS.values()} == set(State)


# Fencing: what an old launch says is not heard


OF_A_LAUNCH: dict[str, Callable[[str], Event]] = {
    "exited": lambda launch: Exited(make_exit(launch, exit_code=1)),
    "orphaned": lambda launch: Orphaned(launch, 1300.0, "server"),
    "ended": lambda launch: Ended(launch, ok=True),
    "not-ended": lambda launch: Ended(launch, ok=False, why="no"),
    "launched": lambda launch: make_launched(launch, 1300.0),
    "adopted": lambda launch: make_launched(launch, 1300.0, adopted=True),
    "launch-failed": lambda launch: LaunchFailed(launch, 1300.0, "no"),
    "interrupted": Interrupted,
    "observed": lambda launch: Observed(
        launch, (Fact(Axis.PROCESS, AxisValue.DEAD, "procfs", 1300.0),), attached=3, active_at=1300.0
    ),
    "closed": lambda launch: Closed(launch, (Fact(Axis.SERVER, AxisValue.DEAD, "procfs", 1300.0),)),
}


@pytest.mark.parametrize("event", OF_A_LAUNCH)
@pytest.mark.parametrize("situation", situations())
@pytest.mark.parametrize("launch_id", ["s1-0", "s1-99", "s1", "other-1", ""])
def test_what_another_launch_says_changes_nothing(situation: str, event: str, launch_id: str) -> None:
    stage = SITUATIONS[situation]()
    before = dict(stage.machine.sessions)

    assert stage.machine.handle(OF_A_LAUNCH[event](launch_id), 1300.0) == []
    assert stage.machine.sessions == before


@pytest.mark.parametrize("event", OF_A_LAUNCH)
def test_what_the_last_launch_says_of_itself_is_not_said_of_the_next(event: str) -> None:
    stage = being_restarted()
    stage.exit(signal=15)
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    before = stage.session()

    assert stage.machine.handle(OF_A_LAUNCH[event]("s1-1"), 1300.0) == []
    assert stage.session() == before


# What is durable comes first


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_must_be_durable_comes_first_and_once(situation: str) -> None:
    stage = SITUATIONS[situation]()
    launch_id = stage.session().launch.id if stage.session().launch else "s1-1"  # type: ignore[union-attr]
    events: list[Event] = [Asked(verb, "s1", "alice") for verb in VERBS]
    events += [make(launch_id) for make in OF_A_LAUNCH.values()]
    events += [TimerFired("s1", TimerKind.HOLD), TimerFired("s1", TimerKind.STABLE), Resumed(), Noted("a.note")]
    for event in events:
        machine = Machine(stage.machine.sessions.values())
        effects = machine.handle(event, 1e6)
        assert [number for number, effect in enumerate(effects) if isinstance(effect, Persist)] in ([], [0]), event


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_the_machine_remembers_is_what_is_durable(situation: str) -> None:
    stage = SITUATIONS[situation]()
    if situation == "parked":
        return

    assert {key: value for key, value in stage.durable.items() if key == "s1"} == {"s1": stage.session()}


def test_effects_name_the_launch_they_are_for() -> None:
    stage = running(ALWAYS)

    effects = stage.exit(exit_code=1)

    closes = [effect for effect in effects if isinstance(effect, CloseLaunch)]
    assert [effect.launch for effect in closes] == [stage.launch()]
    assert closes[0].launch.ended_at == 1100.0


def test_a_spawn_carries_the_session_as_it_is_durable() -> None:
    stage = crashed_and_coming_back()

    spawn = only_spawn(stage.end())

    assert isinstance(spawn, Spawn)
    assert spawn.session == stage.durable["s1"]
