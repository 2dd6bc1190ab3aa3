"""Launches wait for memory, and a role that was given up may be tried once more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import Stage, make_exit, make_launched, make_spec
from vigil.core.effects import Spawn, TimerKind
from vigil.core.events import Applied, Asked, Exited, MemoryRead, Resumed, TimerFired
from vigil.core.handlers.admission import PACE
from vigil.core.machine import Machine
from vigil.core.model.death import IntentVerb
from vigil.core.model.incident import IncidentKind
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import ALIVE, State
from vigil.core.model.team import Manifest, RoleSpec
from vigil.daemon.sense.memory import PLENTY, room_for

POLICY = RestartPolicy(RestartWhen.ALWAYS, max_restarts=1, base_s=10.0, jitter=0.0)
KEY = "shop/backend/coder"
SHORT = MemoryRead(0, "100 MiB are available, 256 MiB must be")


def make_role(replicas: int, **more: float | bool) -> RoleSpec:
    return RoleSpec("shop", "backend", "coder", replicas, make_spec(POLICY), **more)  # type: ignore[arg-type]


def team(replicas: int, stage: Stage | None = None, **more: float | bool) -> Stage:
    stage = stage or Stage()
    stage.tell(Applied(Manifest("shop", (make_role(replicas, **more),)), "alice"))
    return stage


def states(stage: Stage) -> list[str]:
    return [stage.state(session.id) for session in sorted(stage.machine.sessions.values(), key=lambda s: s.index)]


def sid(stage: Stage, index: int) -> str:
    return stage.machine.by_name[f"{KEY}/{index}"]


def short() -> Stage:
    stage = Stage()
    stage.tell(SHORT)
    return team(3, stage)


def test_without_memory_nothing_is_launched_and_says_so() -> None:
    stage = short()

    assert states(stage) == ["pending (memory)"] * 3
    assert "100 MiB are available" in stage.session(sid(stage, 0)).why


def test_as_many_are_launched_as_there_is_memory_for() -> None:
    stage = short()

    effects = stage.tell(MemoryRead(2, "600 MiB are available"))

    assert sum(isinstance(effect, Spawn) for effect in effects) == 2
    assert states(stage) == ["starting", "starting", "pending (memory)"]
    stage.tell(make_launched(stage.launch(sid(stage, 0)).id))
    assert states(stage)[2] == "pending (memory)", "memory is read again before the next"
    stage.tell(MemoryRead(None, ""))
    assert states(stage)[2] == "starting"


def test_those_that_wait_their_turn_say_what_they_wait_for_now() -> None:
    stage = team(PACE + 1)
    assert states(stage)[-1] == "pending (pace)"

    stage.tell(SHORT)

    assert states(stage)[-1] == "pending (memory)"


def test_a_human_is_told_once_when_memory_stays_short_and_when_it_is_over() -> None:
    stage = short()
    stage.now += 60.0
    for index in range(3):
        stage.tell(TimerFired(sid(stage, index), TimerKind.MEMORY))
    opened = [incident.kind for incident in stage.incidents.values() if incident.resolved_at is None]

    stage.tell(MemoryRead(None, ""))

    assert opened == [IncidentKind.LOW_MEMORY]
    assert all(incident.resolved_at is not None for incident in stage.incidents.values())


def test_what_waited_for_memory_goes_on_waiting_in_the_next_daemon() -> None:
    stage = short()

    stage.machine = Machine(stage.durable.values(), (), stage.roles.values())
    stage.tell(SHORT)
    stage.tell(Resumed())

    assert states(stage) == ["pending (memory)"] * 3


def test_a_stopped_one_does_not_wait_any_more() -> None:
    stage = short()

    stage.tell(Asked(IntentVerb.STOP, sid(stage, 0), "alice"))
    stage.tell(MemoryRead(None, ""))

    assert states(stage) == ["stopped", "starting", "starting"]


@pytest.mark.parametrize(
    ("available", "least", "room"),
    [(None, 256, None), (255, 256, 0), (256, 256, 1), (1024, 256, 4), (256 * PLENTY, 256, None), (0, 0, None), (5, 0, None)],
)
def test_room_is_what_is_available_in_launches(available: int | None, least: int, room: int | None) -> None:
    assert room_for(available, least) == room


def given_up(replicas: int = 2, retry_s: float = 3600.0) -> Stage:
    """Return a role of which every replica was given up."""
    stage = team(replicas, retry_saturated_s=retry_s)
    for number in (1, 2):
        for index in range(replicas):
            launch = stage.launch(sid(stage, index))
            stage.tell(make_launched(launch.id, stage.now))
        stage.now += 20.0
        for index in range(replicas):
            stage.tell(Exited(make_exit(stage.launch(sid(stage, index)).id, stage.now, exit_code=1)))
        if number == 1:
            stage.now += 10.0
            for index in range(replicas):
                stage.tell(TimerFired(sid(stage, index), TimerKind.HOLD))
                stage.end_launch(sid(stage, index))
    assert states(stage) == ["failed (saturated)"] * replicas
    return stage


def wake(stage: Stage) -> list[str]:
    """Let every wait be asked for."""
    for session in sorted(stage.machine.sessions.values(), key=lambda s: s.index):
        stage.tell(TimerFired(session.id, TimerKind.HOLD))
    return states(stage)


def test_without_a_trial_nothing_comes_back_a_day_later() -> None:
    stage = given_up(retry_s=0.0)
    stage.now += 86400.0

    assert wake(stage) == ["failed (saturated)"] * 2


@pytest.mark.parametrize("state", State)
def test_nobody_else_is_tried_while_it_is_open_how_a_trial_ends(state: State) -> None:
    stage = given_up()
    stage.now += 3600.0
    assert wake(stage) == ["pending (survivor)", "failed (saturated)"]
    stage.machine.sessions[sid(stage, 0)] = replace(stage.session(sid(stage, 0)), state=state)
    stage.now += 3600.0

    stage.tell(TimerFired(sid(stage, 1), TimerKind.HOLD))

    waits = state in (*ALIVE, State.CRASHED, State.PENDING)
    assert stage.state(sid(stage, 1)) == ("failed (saturated)" if waits else "pending (survivor)")


def test_one_replica_is_tried_and_not_before_its_time() -> None:
    stage = given_up()
    stage.now += 3599.0
    assert wake(stage) == ["failed (saturated)"] * 2
    stage.now += 1.0

    assert wake(stage) == ["pending (survivor)", "failed (saturated)"]


def trial() -> Stage:
    stage = given_up()
    stage.now += 3600.0
    wake(stage)
    stage.end_launch(sid(stage, 0))
    stage.tell(make_launched(stage.launch(sid(stage, 0)).id, stage.now))
    return stage


def test_while_one_is_tried_no_other_is() -> None:
    stage = trial()
    stage.now += 100.0

    assert wake(stage) == ["running", "failed (saturated)"]


def test_a_trial_that_fails_waits_as_long_again_and_is_one_incident() -> None:
    stage = trial()
    stage.now += 20.0
    stage.tell(Exited(make_exit(stage.launch(sid(stage, 0)).id, stage.now, exit_code=1)))

    hold = stage.session(sid(stage, 0)).hold

    assert states(stage) == ["failed (saturated)"] * 2
    assert hold is not None and hold.until == stage.now + 3600.0
    assert [incident.kind for incident in stage.incidents.values() if incident.resolved_at is None] == [IncidentKind.SATURATED]


def test_a_trial_that_goes_well_brings_back_the_others() -> None:
    stage = trial()
    stage.now += POLICY.reset_after_s

    stage.tell(TimerFired(KEY, TimerKind.STEADY))

    assert states(stage) == ["running", "pending (survivor)"]
    assert stage.machine.roles[KEY].charges == 0


def test_the_incident_of_a_role_that_was_given_up_names_the_last_deaths() -> None:
    stage = given_up()

    (incident,) = (incident for incident in stage.incidents.values() if incident.kind is IncidentKind.SATURATED)

    assert incident.deaths
    assert set(incident.deaths) <= {death.id for death in stage.deaths}
    assert stage.deaths[2].id in incident.deaths


@pytest.mark.parametrize(("autostart", "state"), [(False, "pending (cold-start)"), (True, "crashed (backoff)")])
def test_what_waited_when_the_host_went_down_does_not_come_back_by_surprise(autostart: bool, state: str) -> None:
    stage = team(1, autostart=autostart)
    stage.tell(make_launched(stage.launch(sid(stage, 0)).id, stage.now))
    stage.now += 20.0
    stage.tell(Exited(make_exit(stage.launch(sid(stage, 0)).id, stage.now, exit_code=1)))

    stage.machine = Machine(stage.durable.values(), (), stage.roles.values())
    stage.tell(Resumed(booted=True))

    assert states(stage) == [state]


def test_a_changed_command_is_what_a_dead_replica_runs_next() -> None:
    stage = given_up(1)
    role = replace(make_role(1, retry_saturated_s=3600.0), spec=make_spec(POLICY, ("sleep", "61")))

    stage.tell(Applied(Manifest("shop", (role,)), "alice"))
    stage.tell(Asked(IntentVerb.RESET, sid(stage, 0), "alice"))

    session = stage.session(sid(stage, 0))
    assert session.spec.command == ("sleep", "61")
    assert session.state is State.PENDING
