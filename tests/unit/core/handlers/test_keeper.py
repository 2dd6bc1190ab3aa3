"""While no keeper answers, launches wait for one; what Vigil itself lost is charged to nobody (P15)."""

from __future__ import annotations

import pytest

from tests.unit.builders import Stage, kinds, make_exit, make_launched, only_spawn, running, starting
from vigil.core.effects import Spawn, TimerKind
from vigil.core.events import Exited, Interrupted, KeeperHeard, LaunchFailed, MemoryRead, Resumed, TimerFired, Unordered
from vigil.core.handlers.admission import PACE
from vigil.core.model.restart import RestartPolicy, RestartWhen

HANGS = KeeperHeard("the keeper (pid 7) does not answer")
ALWAYS = RestartPolicy(RestartWhen.ALWAYS, base_s=5.0, jitter=0.0)


def crashed(policy: RestartPolicy = ALWAYS) -> Stage:
    """A session in its backoff, of which nothing is left."""
    stage = running(policy)
    stage.tell(Exited(make_exit("s1-1", stage.now, signal=9)))
    return stage


def again(stage: Stage) -> Stage:
    """Another daemon, with what is durable."""
    return Stage(stage.durable.values(), now=2000.0)


def backoff_over(stage: Stage) -> None:
    stage.now += 10.0
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    stage.end()


def test_a_restart_that_is_due_while_no_keeper_answers_waits_for_one_and_is_not_charged() -> None:
    stage = crashed()
    stage.tell(HANGS)

    backoff_over(stage)

    assert (stage.state(), stage.session().charges, stage.launch().id) == ("pending (keeper)", 1, "s1-1")
    assert "the keeper (pid 7) does not answer" in stage.session().why
    assert only_spawn(stage.tell(KeeperHeard())).launch.id == "s1-2"
    assert len(stage.deaths) == 1


def test_a_first_launch_waits_for_a_keeper_too_whatever_its_policy() -> None:
    stage = Stage()
    stage.tell(HANGS)

    stage.declare()

    assert (stage.state(), stage.session().launch) == ("pending (keeper)", None)
    assert only_spawn(stage.tell(KeeperHeard())).launch.id == "s1-1"


@pytest.mark.parametrize(("verb", "after"), [("stop", "stopped"), ("rm", "removed")])
def test_who_waits_for_a_keeper_is_stopped_and_removed_at_once(verb: str, after: str) -> None:
    stage = Stage()
    stage.tell(HANGS)
    stage.declare()

    stage.ask(verb)

    assert stage.state() == after
    assert stage.tell(KeeperHeard()) == []


def test_those_who_waited_for_a_keeper_are_launched_at_the_pace_of_all() -> None:
    stage = Stage()
    stage.tell(HANGS)
    for number in range(PACE + 2):
        stage.declare(session_id=f"s{number}", name=f"n{number}")

    spawned = [effect for effect in stage.tell(KeeperHeard()) if isinstance(effect, Spawn)]

    assert len(spawned) == PACE


def test_a_keeper_that_answers_does_not_make_up_for_memory() -> None:
    stage = Stage()
    stage.tell(HANGS)
    stage.declare()
    stage.tell(MemoryRead(0, "none"))

    assert kinds(stage.tell(KeeperHeard())) == []
    assert only_spawn(stage.tell(MemoryRead(1, "some"))).launch.id == "s1-1"


def test_a_launch_that_found_no_keeper_never_was() -> None:
    stage = crashed()
    backoff_over(stage)
    assert stage.launch().id == "s1-2"
    stage.tell(HANGS)

    stage.tell(Unordered("s1-2", "no answer"))

    assert (stage.state(), stage.launch().id, stage.session().charges) == ("pending (keeper)", "s1-1", 1)
    assert len(stage.deaths) == 1
    assert only_spawn(stage.tell(KeeperHeard())).launch.id == "s1-2"


def test_a_keeper_that_came_back_before_the_launch_knew_is_asked_at_once() -> None:
    stage = starting()

    assert only_spawn(stage.tell(Unordered("s1-1", "there was none"))).launch.id == "s1-1"


@pytest.mark.parametrize(("verb", "after"), [("stop", "stopped"), ("rm", "removed"), ("restart", "pending (keeper)")])
def test_what_was_asked_of_a_launch_that_found_no_keeper_is_done(verb: str, after: str) -> None:
    stage = starting()
    stage.tell(HANGS)
    stage.ask(verb)

    stage.tell(Unordered("s1-1", "no answer"))

    assert stage.state() == after
    assert stage.deaths == []


def test_what_the_launch_before_left_is_ended_before_a_stop_is_done() -> None:
    stage = crashed()
    backoff_over(stage)
    stage.tell(HANGS)
    stage.ask("stop")

    assert kinds(stage.tell(Unordered("s1-2", "no answer"))) == ["EndLaunch"]
    stage.end()

    assert stage.state() == "stopped"


def test_a_launch_that_vigil_lost_has_one_record_costs_nothing_and_is_made_again_after_its_base() -> None:
    stage = starting()  # it never restarts by itself: but it never was

    assert kinds(stage.tell(LaunchFailed("s1-1", 1000.0, "the keeper hung up", ours=True))) == ["SetTimer", "EndLaunch"]

    (death,) = stage.deaths
    assert (death.cause, death.charged, stage.session().charges) == ("launch-failed", False, 0)
    assert (stage.state(), stage.session().hold.until) == ("pending (backoff)", 1005.0)  # type: ignore[union-attr]
    stage.end()
    stage.now = 1005.0
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    assert only_spawn(stage.end()).launch.id == "s1-2"


def test_a_launch_that_failed_by_itself_is_charged_as_ever() -> None:
    stage = starting(ALWAYS)

    stage.tell(LaunchFailed("s1-1", 1000.0, "no such file"))

    assert (stage.deaths[0].charged, stage.session().charges) == (True, 1)


def test_a_new_daemon_without_a_keeper_lets_those_wait_whom_the_last_one_launched() -> None:
    stage = again(starting())
    stage.tell(HANGS, Resumed())

    stage.tell(Interrupted("s1-1"))

    assert (stage.state(), stage.deaths) == ("pending (keeper)", [])
    assert only_spawn(stage.tell(KeeperHeard())).launch.id == "s1-2"


def test_a_new_daemon_launches_who_waited_for_a_keeper_of_the_last_one() -> None:
    before = crashed()
    before.tell(HANGS)
    backoff_over(before)
    stage = again(before)

    assert kinds(stage.tell(Resumed())) == ["EndLaunch"]
    assert only_spawn(stage.end()).launch.id == "s1-2"
    stage.tell(make_launched("s1-2", stage.now))
    assert stage.state() == "running"


def test_an_agent_that_ended_before_its_birth_was_told_gives_its_place_to_the_next() -> None:
    stage = Stage()
    for number in range(PACE + 1):
        stage.declare(session_id=f"s{number}", name=f"n{number}")

    spawned = only_spawn(stage.tell(Exited(make_exit("s0-1", 1000.0))))

    assert (spawned.session.id, stage.deaths[0].cause, stage.deaths[0].uptime_s) == (f"s{PACE}", "unobserved", None)
