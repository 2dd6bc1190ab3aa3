"""A shift replaces the replicas of a role: new ones are ready before old ones are drained, and every phase ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.builders import Stage, kinds, make_exit, make_launched, make_spec, only_spawn
from vigil.core.effects import Effect, EndLaunch, Interrupt, SetTimer, TimerKind
from vigil.core.events import (
    Applied,
    Asked,
    Attended,
    Ended,
    Exited,
    LaunchFailed,
    Observed,
    ShiftAborted,
    ShiftAsked,
    TimerFired,
)
from vigil.core.handlers.shift import DRAINS, SETTLED_S, drain
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import Session, State
from vigil.core.model.team import Health, Manifest, Phase, RoleSpec
from vigil.core.rules.plan import make_plan

POLICY = RestartPolicy(RestartWhen.ALWAYS, max_restarts=5, base_s=10.0, jitter=0.0)
OLD, NEW = ("sleep", "60"), ("sleep", "61")
TIMEOUT_S = 600.0


def make_role(name: str = "coder", replicas: int = 2, command: tuple[str, ...] = OLD, **more: Any) -> RoleSpec:
    return RoleSpec("shop", "backend", name, replicas, make_spec(POLICY, command), **more)


def key(name: str = "coder") -> str:
    return f"shop/backend/{name}"


def apply(stage: Stage, *roles: RoleSpec) -> None:
    stage.tell(Applied(Manifest("shop", roles), "alice"))


def launch_all(stage: Stage) -> None:
    """Let everything that is starting come to life."""
    while starting := [s for s in stage.machine.sessions.values() if s.state is State.STARTING]:
        for session in starting:
            assert session.launch is not None
            stage.tell(make_launched(session.launch.id, stage.now))


def serving(*roles: RoleSpec) -> Stage:
    """Return a stage on which roles run, and whose manifest then changed the command of each."""
    stage = Stage()
    apply(stage, *roles)
    launch_all(stage)
    stage.now = 2000.0
    apply(stage, *(replace(role, spec=make_spec(POLICY, NEW)) for role in roles))
    return stage


def ask(stage: Stage, *names: str, timeout_s: float = TIMEOUT_S) -> list[Effect]:
    return stage.tell(ShiftAsked(tuple(map(key, names or ("coder",))), "alice", timeout_s))


def at(stage: Stage, index: int, name: str = "coder") -> Session | None:
    return stage.machine.find(f"{key(name)}/{index}")


def there(stage: Stage, index: int, name: str = "coder") -> Session:
    session = at(stage, index, name)
    assert session is not None
    return session


def shown(stage: Stage, name: str = "coder") -> dict[int, str]:
    return {s.index: stage.state(s.id) for s in stage.machine.sessions.values() if s.role == key(name)}


def runs(stage: Stage, name: str = "coder") -> dict[int, tuple[str, ...]]:
    return {s.index: s.spec.command for s in stage.machine.sessions.values() if s.role == key(name)}


def settle(stage: Stage, name: str = "coder") -> list[Effect]:
    """Let new replicas that say nothing be up for long enough."""
    launch_all(stage)
    stage.now += SETTLED_S
    return stage.tell(TimerFired(key(name), TimerKind.SHIFT))


def phase(stage: Stage, name: str = "coder") -> Phase | None:
    shift = stage.machine.roles[key(name)].shift
    return None if shift is None else shift.phase


def end_draining(stage: Stage, name: str = "coder") -> None:
    """Let all that is being ended die and be gone, as often as something is."""
    while ending := [s for s in stage.machine.sessions.values() if s.state is State.ENDING and s.role == key(name)]:
        for session in ending:
            assert session.launch is not None
            if session.launch.ended_at is None:
                stage.tell(Exited(make_exit(session.launch.id, stage.now, signal=2)))
            stage.tell(Ended(session.launch.id, True))


def outcome(stage: Stage, name: str = "coder") -> tuple[bool, str]:
    shifted = stage.machine.roles[key(name)].shifted
    assert shifted is not None
    return shifted.done, shifted.why


def test_a_shift_replaces_the_old_by_the_new_and_leaves_as_many_as_before() -> None:
    stage = serving(make_role())

    ask(stage)
    assert shown(stage) == {0: "running", 1: "running", 2: "starting", 3: "starting"}
    settle(stage)
    assert phase(stage) is Phase.DRAINING
    end_draining(stage)

    assert runs(stage) == {2: NEW, 3: NEW}
    assert stage.machine.roles[key()].slots == (2, 3)
    assert outcome(stage) == (True, "every replica is a new one")
    assert {death.cause for death in stage.deaths} == {Cause.POLICY}
    assert stage.machine.roles[key()].charges == 0
    wanted = Manifest("shop", (make_role(command=NEW),))
    assert make_plan(wanted, stage.machine.roles, stage.machine.sessions.values()).steps == ()


def test_the_next_shift_takes_the_slots_that_became_free() -> None:
    stage = serving(make_role())
    for _ in range(2):
        ask(stage)
        settle(stage)
        end_draining(stage)

    assert sorted(runs(stage)) == [0, 1]


def test_nothing_old_is_touched_before_every_new_one_is_ready() -> None:
    stage = serving(make_role())
    ask(stage)
    launch_all(stage)
    stage.now += SETTLED_S - 1

    effects = stage.tell(TimerFired(key(), TimerKind.SHIFT))

    assert kinds(effects) == ["SetTimer"]
    assert phase(stage) is Phase.LAUNCHING


def test_an_agent_that_speaks_is_ready_by_its_first_word_and_not_by_being_there() -> None:
    stage = serving(make_role(replicas=1, speaks=True))
    ask(stage)
    settle(stage)
    assert phase(stage) is Phase.LAUNCHING

    stage.hear("idle", there(stage, 1).id)

    assert phase(stage) is Phase.DRAINING


def test_a_role_that_promises_signs_of_life_is_ready_by_the_first_of_them() -> None:
    stage = serving(make_role(replicas=1, health=Health(60.0)))
    ask(stage)
    settle(stage)
    assert phase(stage) is Phase.LAUNCHING

    stage.hear("", there(stage, 1).id)

    assert phase(stage) is Phase.DRAINING


def test_what_is_busy_is_interrupted_has_its_grace_and_is_ended_then() -> None:
    stage = serving(make_role(replicas=1))
    stage.hear("tool", there(stage, 0).id)
    ask(stage)

    effects = settle(stage)
    launch = stage.launch(there(stage, 0).id)
    assert Interrupt(launch) in effects
    assert stage.intents[-1].cause is Cause.POLICY
    stage.now += 10.0
    effects = stage.tell(TimerFired(there(stage, 0).id, TimerKind.DRAIN))

    assert [(e.launch.id, e.unless_attended) for e in effects if isinstance(e, EndLaunch)] == [(launch.id, True)]


@pytest.mark.parametrize("activity", ["idle", "waiting-human", "waiting-timer"])
def test_what_only_rests_or_waits_is_ended_at_once(activity: str) -> None:
    stage = serving(make_role(replicas=1))
    stage.hear(activity, there(stage, 0).id)
    ask(stage)

    effects = settle(stage)

    assert "Interrupt" not in kinds(effects)
    assert "EndLaunch" in kinds(effects)


def test_what_leaves_by_itself_when_asked_is_removed_without_waiting_for_its_grace() -> None:
    stage = serving(make_role(replicas=1))
    ask(stage)
    settle(stage)

    effects = stage.tell(Exited(make_exit(stage.launch(there(stage, 0).id).id, stage.now, signal=2)))

    assert "EndLaunch" in kinds(effects)


def test_an_old_replica_with_a_person_in_it_is_not_ended_and_the_shift_still_ends() -> None:
    stage = serving(make_role(replicas=1))
    ask(stage)
    settle(stage)
    launch = stage.launch(there(stage, 0).id)

    effects = stage.tell(Attended(launch.id, "a person is attached to its pane"))
    assert stage.state(there(stage, 0).id) == "running"
    assert "Interrupt" not in kinds(effects), "it is not asked again while that person is there"
    stage.now += TIMEOUT_S
    stage.tell(TimerFired(key(), TimerKind.SHIFT))

    assert outcome(stage) == (True, f"not drained yet: {key()}/0")
    assert shown(stage) == {0: "running", 1: "running"}
    assert phase(stage) is None
    effects = stage.tell(Observed(launch.id, (), attached=0))
    assert "Interrupt" in kinds(effects), "it goes once nobody is there"


def test_a_new_replica_that_dies_ends_the_shift_and_the_old_ones_serve_on() -> None:
    stage = serving(make_role())
    ask(stage)
    launch_all(stage)

    stage.tell(Exited(make_exit(stage.launch(there(stage, 3).id).id, stage.now, exit_code=1)))

    assert phase(stage) is None
    done, why = outcome(stage)
    assert not done and why.startswith(f"{key()}/3 did not stay up: crash")
    end_draining(stage)
    assert shown(stage) == {0: "running", 1: "running"}
    assert runs(stage) == {0: OLD, 1: OLD}
    assert stage.machine.roles[key()].slots == (0, 1)


def test_an_old_replica_that_dies_meanwhile_is_charged_and_the_shift_goes_on() -> None:
    stage = serving(make_role())
    ask(stage)
    launch_all(stage)

    stage.tell(Exited(make_exit(f"{there(stage, 0).id}-1", stage.now, exit_code=3)))
    settle(stage)
    end_draining(stage)

    assert outcome(stage) == (True, "every replica is a new one")
    assert shown(stage) == {2: "running", 3: "running"}
    assert stage.machine.roles[key()].charges == 1


def test_after_a_shift_that_was_given_up_the_next_one_works() -> None:
    stage = serving(make_role())
    ask(stage)
    launch_all(stage)
    stage.tell(Exited(make_exit(stage.launch(there(stage, 2).id).id, stage.now, exit_code=1)))
    end_draining(stage)

    ask(stage)
    settle(stage)
    end_draining(stage)

    assert outcome(stage)[0]
    assert set(runs(stage).values()) == {NEW}


def test_a_new_replica_that_never_comes_to_life_ends_the_shift() -> None:
    stage = serving(make_role(replicas=1))
    spawn = only_spawn(ask(stage))

    stage.tell(LaunchFailed(spawn.launch.id, stage.now, "no such file"))

    assert not outcome(stage)[0]
    end_draining(stage)
    assert shown(stage) == {0: "running"}


def test_a_shift_that_takes_too_long_is_given_up_and_says_what_it_waited_for() -> None:
    stage = serving(make_role(replicas=1, speaks=True))
    ask(stage)
    launch_all(stage)
    stage.now += TIMEOUT_S

    stage.tell(TimerFired(key(), TimerKind.SHIFT))

    assert outcome(stage) == (False, f"not ready within 600 s: {key()}/1 has not said anything yet")
    end_draining(stage)
    assert shown(stage) == {0: "running"}


def test_one_that_dies_while_the_old_are_drained_leaves_those_that_are_not_drained_yet() -> None:
    stage = serving(make_role(replicas=DRAINS + 2))
    ask(stage)
    settle(stage)
    going = [index for index, state in shown(stage).items() if state == "ending"]
    assert going == list(range(DRAINS)), "the oldest first, a few at once"

    dead = there(stage, DRAINS + 3)
    stage.tell(Exited(make_exit(stage.launch(dead.id).id, stage.now, exit_code=1)))
    end_draining(stage)

    role = stage.machine.roles[key()]
    assert len(role.slots) == DRAINS + 2
    assert {DRAINS, DRAINS + 1} <= set(role.slots), "they still serve"
    assert dead.index not in role.slots
    assert sorted(shown(stage)) == sorted(role.slots)


def test_roles_are_shifted_one_after_another() -> None:
    stage = serving(make_role("a", 1), make_role("b", 1))
    ask(stage, "a", "b")
    assert (phase(stage, "a"), phase(stage, "b")) == (Phase.LAUNCHING, Phase.WAITING)

    settle(stage, "a")
    assert phase(stage, "b") is Phase.WAITING
    end_draining(stage, "a")
    assert phase(stage, "b") is Phase.LAUNCHING
    settle(stage, "b")
    end_draining(stage, "b")

    assert outcome(stage, "a")[0] and outcome(stage, "b")[0]


def test_when_one_role_fails_those_behind_it_are_not_begun_and_those_before_it_stay_new() -> None:
    stage = serving(make_role("a", 1), make_role("b", 1), make_role("c", 1))
    ask(stage, "a", "b", "c")
    settle(stage, "a")
    end_draining(stage, "a")
    launch_all(stage)

    stage.tell(Exited(make_exit(stage.launch(there(stage, 1, "b").id).id, stage.now, exit_code=1)))

    assert [outcome(stage, name)[0] for name in "abc"] == [True, False, False]
    assert outcome(stage, "c")[1].startswith(f"not begun: {key('b')}")
    assert runs(stage, "a") == {1: NEW}
    assert runs(stage, "c") == {0: OLD}


def test_a_role_that_is_taken_out_while_it_is_shifted_lets_the_next_one_begin() -> None:
    stage = serving(make_role("a", 1), make_role("b", 1))
    ask(stage, "a", "b")

    apply(stage, replace(make_role("b", 1), spec=make_spec(POLICY, NEW)))

    assert phase(stage, "b") is Phase.LAUNCHING


def test_an_abort_leaves_the_old_ones_and_takes_the_new_ones_away() -> None:
    stage = serving(make_role("a", 1), make_role("b", 1))
    ask(stage, "a", "b")
    launch_all(stage)

    stage.tell(ShiftAborted((key("a"), key("b")), "bob"))
    end_draining(stage, "a")

    assert shown(stage, "a") == {0: "running"}
    assert outcome(stage, "a") == (False, "aborted by bob")
    assert (phase(stage, "a"), phase(stage, "b")) == (None, None)


@pytest.mark.parametrize("resting", [State.STOPPED, State.SUCCEEDED, State.PARKED])
def test_what_rests_keeps_its_slot_and_will_run_the_new_command(resting: State) -> None:
    stage = Stage()
    policy = replace(POLICY, when=RestartWhen.ON_FAILURE)
    role = replace(make_role(), spec=make_spec(policy))
    apply(stage, role)
    launch_all(stage)
    stage.now = 2000.0
    if resting is not State.SUCCEEDED:
        verb = IntentVerb.STOP if resting is State.STOPPED else IntentVerb.HIBERNATE
        stage.tell(Asked(verb, there(stage, 0).id, "alice"))
    stage.tell(Exited(make_exit(stage.launch(there(stage, 0).id).id, stage.now, exit_code=0)))
    stage.end_launch(there(stage, 0).id)
    apply(stage, replace(role, spec=make_spec(policy, NEW)))

    ask(stage)
    settle(stage)
    end_draining(stage)

    assert {index: there(stage, index).state for index in (0, 2)} == {0: resting, 2: State.RUNNING}
    assert runs(stage) == {0: NEW, 2: NEW}


def test_a_replica_in_backoff_does_not_hold_up_a_shift() -> None:
    stage = serving(make_role())
    stage.tell(Exited(make_exit(stage.launch(there(stage, 0).id).id, stage.now, exit_code=1)))
    assert shown(stage)[0] == "crashed (backoff)"

    ask(stage)
    settle(stage)
    end_draining(stage)

    assert sorted(runs(stage)) == [2, 3]


def test_a_manifest_that_changes_a_role_in_a_shift_waits() -> None:
    stage = serving(make_role(replicas=1))
    ask(stage)

    plan = make_plan(Manifest("shop", (make_role(replicas=5),)), stage.machine.roles, stage.machine.sessions.values())

    assert (plan.steps, [(held.slot, held.reason) for held in plan.held]) == ((), [(key(), "shift")])


@pytest.mark.parametrize("moment", ["launching", "draining"])
def test_a_shift_goes_on_after_the_daemon_was_killed(moment: str) -> None:
    stage = serving(make_role(replicas=1))
    ask(stage)
    launch_all(stage)
    if moment == "draining":
        settle(stage)

    timers = [effect for effect in stage.restart() if isinstance(effect, SetTimer) and effect.kind == "shift"]
    assert [timer.session_id for timer in timers] == [key()]
    settle(stage)
    end_draining(stage)

    assert outcome(stage)[0]
    assert runs(stage) == {1: NEW}


def test_a_replica_somebody_removes_is_born_again_and_clean() -> None:
    stage = serving(make_role())
    before = there(stage, 0).id
    stage.tell(Asked(IntentVerb.RM, before, "alice"))
    assert there(stage, 0).id == before, "it is not gone yet"

    end_draining(stage)

    assert there(stage, 0).id != before
    assert (there(stage, 0).charges, there(stage, 0).last_death) == (0, None)
    assert stage.machine.roles[key()].charges == 0


def test_a_role_that_comes_back_while_its_old_ones_still_leave_takes_other_slots_and_ids() -> None:
    stage = serving(make_role())
    before = {session.id for session in stage.machine.sessions.values()}
    apply(stage)

    apply(stage, make_role())

    assert sorted(shown(stage)) == [0, 1, 2, 3]
    assert stage.machine.roles[key()].slots == (2, 3)
    end_draining(stage)
    assert sorted(shown(stage)) == [2, 3]
    assert not before & stage.machine.sessions.keys()


@pytest.mark.parametrize("verb", ["stop", "restart", "rm"])
def test_who_asks_while_a_drain_waits_for_a_person_does_not_wait(verb: str) -> None:
    stage = serving(make_role(replicas=1))
    ask(stage)
    settle(stage)
    old = there(stage, 0)
    assert stage.state(old.id) == "ending"

    effects = stage.tell(Asked(IntentVerb(verb), old.id, "alice"))

    assert [effect.unless_attended for effect in effects if isinstance(effect, EndLaunch)] == [False]


@pytest.mark.parametrize("state", [State.STARTING, State.RUNNING, State.SUSPECT, State.STUCK])
def test_what_is_in_doubt_is_not_asked_to_leave(state: State) -> None:
    stage = serving(make_role(replicas=1))
    session = replace(there(stage, 0), state=state)
    stage.machine.sessions[session.id] = session

    drain(stage.machine._book, session, "policy", "its role has other slots now", stage.now)

    assert there(stage, 0).state is (State.ENDING if state in (State.STARTING, State.RUNNING) else state)
