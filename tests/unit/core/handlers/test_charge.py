"""Roles: one count for all replicas, one charge for an event, one marker, and forgiveness when all have been up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.builders import Stage, make_exit, make_launched, make_spec, told_kinds
from vigil.core.effects import TimerKind
from vigil.core.events import Applied, Asked, Exited, TimerFired
from vigil.core.machine import Machine
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.incident import IncidentKind
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import State
from vigil.core.model.team import Manifest, RoleSpec

POLICY = RestartPolicy(RestartWhen.ALWAYS, max_restarts=2, base_s=10.0, jitter=0.0)
KEY = "shop/backend/coder"


def make_role(replicas: int = 3, policy: RestartPolicy = POLICY, name: str = "coder") -> RoleSpec:
    return RoleSpec("shop", "backend", name, replicas, make_spec(policy))


def declare(*roles: RoleSpec) -> Applied:
    return Applied(Manifest("shop", roles), "alice")


def team(replicas: int = 3, policy: RestartPolicy = POLICY) -> Stage:
    """Return a stage on which all replicas of a role run."""
    stage = Stage()
    stage.tell(declare(make_role(replicas, policy)))
    for index in range(replicas):
        stage.tell(make_launched(f"{sid(stage, index)}-1", stage.now))
    stage.now = 1100.0
    return stage


def sid(stage: Stage, index: int) -> str:
    """Return the id of the session in a slot."""
    return stage.machine.by_name[f"{KEY}/{index}"]


def die(stage: Stage, index: int, **found: Any) -> None:
    stage.tell(Exited(make_exit(stage.launch(sid(stage, index)).id, stage.now, **(found or {"signal": 9}))))


def come_back(stage: Stage, index: int) -> None:
    """Let a replica's wait be over and its replacement come to life."""
    hold = stage.session(sid(stage, index)).hold
    assert hold is not None and hold.until is not None
    stage.now = max(stage.now, hold.until)
    stage.tell(TimerFired(sid(stage, index), TimerKind.HOLD))
    stage.end_launch(sid(stage, index))
    stage.tell(make_launched(stage.launch(sid(stage, index)).id, stage.now))


def at_its_limit() -> Stage:
    """Return a role that has had all the restarts its policy allows."""
    stage = team()
    for _ in range(2):
        die(stage, 0)
        come_back(stage, 0)
        stage.now += 5.0
    return stage


def states(stage: Stage) -> list[str]:
    return [stage.state(session_id) for session_id in sorted(stage.machine.sessions)]


def test_deaths_within_a_second_are_one_event_one_charge_and_one_marker() -> None:
    stage = team(5)

    for index in (3, 1, 4, 0, 2):
        die(stage, index)
        stage.now += 0.2

    assert stage.machine.roles[KEY].charges == 1
    assert states(stage) == ["crashed (backoff)", *["pending (backoff)"] * 4]
    waits = [replica.hold.until - replica.last_death.at for replica in map(stage.session, sorted(stage.machine.sessions))]  # type: ignore
    assert all(abs(wait_s - waits[0]) < 1e-6 for wait_s in waits), "each from its own death"
    assert all(death.charged for death in stage.deaths)


def test_a_later_death_is_another_event_and_takes_the_marker() -> None:
    stage = team()

    die(stage, 0)
    stage.now += 2.0
    die(stage, 1)

    assert stage.machine.roles[KEY].charges == 2
    assert states(stage) == ["pending (backoff)", "crashed (backoff)", "running"]


def test_a_death_that_nobody_is_to_blame_for_costs_the_role_nothing() -> None:
    stage = team()

    die(stage, 0, exit_code=0)

    assert stage.machine.roles[KEY].charges == 0 or stage.deaths[0].cause is Cause.EARLY_EXIT
    assert stage.state(sid(stage, 0)) == "pending (backoff)"


def test_a_role_saturates_once_and_says_so_once_and_its_healthy_replicas_are_not_touched() -> None:
    stage = at_its_limit()

    die(stage, 0)
    die(stage, 1)

    assert states(stage) == ["failed (saturated)", "failed (saturated)", "running"]
    kinds = [incident.kind for incident in stage.incidents.values() if incident.resolved_at is None]
    assert kinds == [IncidentKind.SATURATED]


def test_a_reset_of_one_replica_brings_back_all_that_wait_and_forgets_the_count() -> None:
    stage = at_its_limit()
    die(stage, 0)
    die(stage, 1)

    stage.tell(Asked(IntentVerb.RESET, sid(stage, 1), "alice"))

    assert stage.machine.roles[KEY].charges == 0
    assert states(stage) == ["pending (survivor)", "pending (survivor)", "running"]
    assert [incident.kind for incident in stage.incidents.values() if incident.resolved_at is None] == []


def test_a_steady_sibling_neither_clears_the_count_of_one_that_loops_nor_is_touched() -> None:
    stage = team(2)
    stage.now = 10_000.0  # both have been up for hours

    for count in (1, 2):
        die(stage, 0)
        assert stage.machine.roles[KEY].charges == count
        come_back(stage, 0)
        stage.now += 5.0
        stage.tell(TimerFired(KEY, TimerKind.STEADY))

    die(stage, 0)
    assert states(stage) == ["failed (saturated)", "running"]


def test_a_role_is_forgiven_when_its_youngest_replica_has_been_up_long_enough() -> None:
    stage = team(2)
    die(stage, 0)
    come_back(stage, 0)

    stage.now += POLICY.reset_after_s - 1.0
    stage.tell(TimerFired(KEY, TimerKind.STEADY))
    assert stage.machine.roles[KEY].charges == 1
    stage.now += 1.0
    stage.tell(TimerFired(KEY, TimerKind.STEADY))

    assert stage.machine.roles[KEY].charges == 0


def test_nothing_is_forgiven_while_a_replica_is_in_backoff() -> None:
    stage = team(2, replace(POLICY, base_s=5000.0, cap_s=5000.0))
    die(stage, 0)
    stage.now += 2 * POLICY.reset_after_s

    stage.tell(TimerFired(KEY, TimerKind.STEADY))

    assert stage.machine.roles[KEY].charges == 1


def test_a_count_survives_the_daemon() -> None:
    stage = team(2)
    die(stage, 0)
    hold = stage.session(sid(stage, 0)).hold

    stage.restart()

    assert stage.machine.roles[KEY].charges == 1
    assert stage.session(sid(stage, 0)).hold == hold


def test_declaring_a_role_anew_changes_its_policy_and_touches_nothing_that_runs() -> None:
    stage = team(2)
    die(stage, 0)
    never = replace(POLICY, when=RestartWhen.NEVER)

    asked = stage.tell(declare(make_role(2, never)))

    assert told_kinds(asked) == []
    assert stage.session(sid(stage, 1)).spec.restart == never
    assert stage.machine.roles[KEY].charges == 1


def test_a_forgotten_role_leaves_no_count_for_its_namesake() -> None:
    stage = team(1)
    die(stage, 0)

    stage.tell(declare())
    stage.tell(declare(make_role(1)))

    assert stage.machine.roles[KEY].charges == 0


@pytest.mark.parametrize("state", [State.STOPPED, State.SUCCEEDED])
def test_what_rests_keeps_its_slot(state: State) -> None:
    policy = replace(POLICY, when=RestartWhen.ON_FAILURE)
    stage = team(2, policy)
    if state is State.STOPPED:
        stage.tell(Asked(IntentVerb.STOP, sid(stage, 0), "alice"))
        die(stage, 0)
        stage.end_launch(sid(stage, 0))
    else:
        die(stage, 0, exit_code=0)

    stage.now += 1e6
    stage.tell(TimerFired(sid(stage, 0), TimerKind.HOLD))

    assert stage.session(sid(stage, 0)).state is state


@pytest.mark.parametrize(("autostart", "state"), [(False, "pending (cold-start)"), (True, "pending (backoff)")])
def test_after_a_reboot_a_fleet_comes_back_only_where_its_manifest_says_so(autostart: bool, state: str) -> None:
    stage = team(1)
    stage.tell(declare(replace(make_role(1), autostart=autostart)))

    die(stage, 0, rebooted=True)

    assert stage.state(sid(stage, 0)) == state
    assert stage.machine.roles[KEY].charges == 0


@pytest.mark.parametrize("verb", ["start", "reset"])
def test_what_waits_after_a_reboot_is_started_by_a_person(verb: str) -> None:
    stage = team(1)
    die(stage, 0, rebooted=True)

    stage.tell(Asked(IntentVerb(verb), sid(stage, 0), "alice"))

    assert stage.state(sid(stage, 0)) == "pending (survivor)"


def test_the_marker_goes_with_the_newest_event_also_when_events_are_close() -> None:
    stage = team(5)
    for index, wait_s in ((3, 0.0), (1, 0.6), (2, 0.6)):
        stage.now += wait_s
        die(stage, index)

    assert stage.machine.roles[KEY].charges == 2
    assert [index for index in range(5) if stage.session(sid(stage, index)).state is State.CRASHED] == [2]


def test_a_role_is_forgiven_also_when_nobody_of_it_was_launched_since() -> None:
    stage = team(2, replace(POLICY, when=RestartWhen.NEVER))
    die(stage, 0)
    stage.now += POLICY.reset_after_s

    stage.tell(TimerFired(KEY, TimerKind.STEADY))

    assert stage.machine.roles[KEY].charges == 0


def test_one_that_was_given_up_is_not_forgiven_by_a_steady_sibling() -> None:
    stage = at_its_limit()
    die(stage, 0)
    stage.now += 10 * POLICY.reset_after_s

    stage.tell(TimerFired(KEY, TimerKind.STEADY))

    assert stage.machine.roles[KEY].charges == 3
    assert stage.state(sid(stage, 0)) == "failed (saturated)"


def test_a_trial_that_is_not_declared_any_more_does_not_come() -> None:
    stage = Stage()
    role = replace(make_role(1), retry_saturated_s=3600.0)
    stage.tell(declare(role))
    for _ in range(3):
        stage.tell(make_launched(stage.launch(sid(stage, 0)).id, stage.now))
        die(stage, 0)
        stage.now += 100.0
        stage.tell(TimerFired(sid(stage, 0), TimerKind.HOLD))
        stage.end_launch(sid(stage, 0))
    assert stage.session(sid(stage, 0)).hold is not None

    stage.tell(declare(replace(role, retry_saturated_s=0.0)))
    stage.now += 86400.0
    stage.tell(TimerFired(sid(stage, 0), TimerKind.HOLD))
    stage.restart()

    assert stage.state(sid(stage, 0)) == "failed (saturated)"


def test_a_role_that_was_stored_without_slots_keeps_its_replicas() -> None:
    stage = team(2)
    old = replace(stage.machine.roles[KEY], slots=())

    stage.machine = Machine(stage.durable.values(), (), [old])
    effects = stage.tell(TimerFired(sid(stage, 0), TimerKind.STABLE))

    assert told_kinds(effects) == []
    assert states(stage) == ["running", "running"]
