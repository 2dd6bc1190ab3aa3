"""Every death is recorded once, charged once, and followed by what its policy says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.builders import (
    ALWAYS,
    NEVER,
    ON_FAILURE,
    SITUATIONS,
    being_replaced,
    crashed,
    crashed_and_coming_back,
    kinds,
    make_exit,
    make_launched,
    only_timer,
    running,
    situations,
    starting,
    suspect,
)
from vigil.core.effects import EndLaunch, TimerKind
from vigil.core.events import Exited, LaunchFailed, Orphaned, TimerFired
from vigil.core.model.death import Cause
from vigil.core.model.reading import Axis
from vigil.core.model.restart import Hold, HoldReason, RestartPolicy, RestartWhen
from vigil.core.model.session import ALIVE, State
from vigil.core.rules.restart import delay_s, jitter_of

# Deaths


@pytest.mark.parametrize(
    ("policy", "found", "state", "cause"),
    [
        (NEVER, {"exit_code": 0}, "succeeded", Cause.FINISHED),
        (NEVER, {"exit_code": 1}, "failed", Cause.CRASH),
        (NEVER, {"signal": 9}, "failed", Cause.KILLED_BY_UNKNOWN),
        (NEVER, {}, "failed", Cause.UNOBSERVED),
        (NEVER, {"rebooted": True}, "failed", Cause.HOST_REBOOTED),
        (ON_FAILURE, {"exit_code": 0}, "succeeded", Cause.FINISHED),
        (ON_FAILURE, {"exit_code": 1}, "crashed (backoff)", Cause.CRASH),
        (ON_FAILURE, {"signal": 15}, "crashed (backoff)", Cause.KILLED_BY_UNKNOWN),
        (ON_FAILURE, {}, "crashed (backoff)", Cause.UNOBSERVED),
        (ON_FAILURE, {"server_ended": True, "server_signal": 9}, "crashed (backoff)", Cause.SERVER_DIED),
        (ON_FAILURE, {"rebooted": True}, "pending (backoff)", Cause.HOST_REBOOTED),
        (ALWAYS, {"exit_code": 0}, "pending (backoff)", Cause.FINISHED),
        (ALWAYS, {"exit_code": 1}, "crashed (backoff)", Cause.CRASH),
        (ALWAYS, {"started": False, "exit_code": 127}, "crashed (backoff)", Cause.LAUNCH_FAILED),
    ],
)
def test_a_policy_decides_what_a_death_leaves(policy: RestartPolicy, found: dict[str, Any], state: str, cause: Cause) -> None:
    stage = running(policy)

    asked = stage.exit(**found)

    assert (stage.state(), stage.deaths[0].cause) == (state, cause)
    assert ("SetTimer" in kinds(asked)) == ("backoff" in state)
    assert kinds(asked)[-1] == ("EndLaunch" if cause is Cause.LAUNCH_FAILED else "CloseLaunch")


def test_exit_0_within_ten_seconds_is_early_under_always() -> None:
    stage = starting(ALWAYS)
    stage.tell(make_launched(at=1001.0))
    stage.now = 1005.0

    stage.exit(exit_code=0)

    assert (stage.deaths[0].cause, stage.deaths[0].uptime_s, stage.state()) == (Cause.EARLY_EXIT, 4.0, "crashed (backoff)")


@pytest.mark.parametrize("situation", situations(State.STARTING, State.RUNNING, State.SUSPECT))
def test_an_exit_in_a_state_that_nobody_ends_is_charged(situation: str) -> None:
    stage = SITUATIONS[situation]()

    stage.exit(exit_code=1)

    assert (stage.state(), stage.deaths[-1].cause) == ("failed", Cause.CRASH)


@pytest.mark.parametrize("situation", ["being_stopped", "being_restarted", "being_removed"])
def test_an_exit_of_what_an_operator_ends_waits_for_the_verification(situation: str) -> None:
    stage = SITUATIONS[situation](ALWAYS)

    assert kinds(stage.exit(signal=9)) == []

    assert stage.state() == "ending"
    assert (stage.deaths[0].cause, stage.deaths[0].charged) == (Cause.OPERATOR, False)
    assert stage.session().charges == 0


@pytest.mark.parametrize("situation", [name for name in situations() if SITUATIONS[name]().deaths])
def test_an_exit_of_what_is_dead_already_changes_nothing(situation: str) -> None:
    stage = SITUATIONS[situation]()
    known, state = list(stage.deaths), stage.state()

    assert stage.exit(exit_code=3) == []
    assert (stage.deaths, stage.state()) == (known, state)


@pytest.mark.parametrize("situation", situations(*ALIVE))
def test_a_death_is_recorded_once_however_often_the_exit_is_told(situation: str) -> None:
    stage = SITUATIONS[situation]()

    for number in range(3):
        stage.exit(exit_code=number)
        stage.tell(LaunchFailed("s1-1", stage.now, "late"))

    assert len(stage.deaths) == 1
    assert stage.log.count("session.died") == 1
    assert stage.deaths[0].id == "d-s1-1"


@pytest.mark.parametrize("situation", situations())
def test_a_dead_launch_shows_a_dead_process(situation: str) -> None:
    stage = SITUATIONS[situation]()
    if situation in ("waiting_for_its_turn", "parked"):
        return
    stage.exit(exit_code=1)

    reading = stage.session().vitals.axes[Axis.PROCESS]

    assert (reading.value, reading.conclusive) == ("dead", True)
    assert stage.launch().ended_at is not None


def test_a_death_carries_what_is_known_of_it() -> None:
    stage = running(ON_FAILURE)

    stage.exit(signal=11, observed_by="keeper", status_source="keeper (wait)")

    (death,) = stage.deaths
    assert (death.session_id, death.session, death.launch_id, death.at) == ("s1", "alpha", "s1-1", 1100.0)
    assert (death.observed_by, death.exit_code, death.signal, death.intent) == ("keeper", None, 11, None)
    assert death.uptime_s == 99.0
    assert stage.session().last_death == death


def test_the_status_of_a_server_that_died_is_the_servers() -> None:
    stage = running(ON_FAILURE)

    stage.exit(signal=1, server_ended=True, server_exit_code=None, server_signal=9)

    assert (stage.deaths[0].cause, stage.deaths[0].exit_code, stage.deaths[0].signal) == (Cause.SERVER_DIED, None, 9)


def test_a_clock_that_went_back_gives_no_negative_uptime() -> None:
    stage = running()

    stage.tell(Exited(make_exit(at=900.0, exit_code=1)))

    assert stage.deaths[0].uptime_s == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_real_delay_is_the_documented_one(count: int) -> None:
    stage = running(ALWAYS)
    for number in range(1, count + 1):
        died_at = stage.now
        timer = only_timer(stage.exit(exit_code=1))
        assert timer.at == stage.session().hold.until  # type: ignore[union-attr]
        assert timer.at == died_at + delay_s(number, ALWAYS, jitter_of(f"s1-{number}"))
        stage.now = timer.at
        assert kinds(stage.tell(TimerFired("s1", TimerKind.HOLD))) == ["EndLaunch"]
        assert kinds(stage.end()) == ["Spawn"]
        stage.tell(make_launched(f"s1-{number + 1}", stage.now))

    assert stage.session().charges == count


def test_a_crash_is_shown_until_its_replacement_starts() -> None:
    stage = crashed()
    since = stage.session().state_since
    stage.now = 1200.0
    stage.tell(TimerFired("s1", TimerKind.HOLD))

    assert (stage.state(), stage.session().state_since) == ("crashed (survivor)", since)
    stage.end()
    assert stage.state() == "starting"


def test_a_death_that_was_seen_late_waits_from_when_it_happened() -> None:
    stage = running(ALWAYS)
    stage.now = 9000.0

    timer = only_timer(stage.tell(Exited(make_exit(at=1100.0, exit_code=1))))

    assert timer.at < 1107.0


@pytest.mark.parametrize("allowed", [1, 3])
def test_restarts_never_exceed_the_policy(allowed: int) -> None:
    stage = running(RestartPolicy(RestartWhen.ON_FAILURE, max_restarts=allowed))
    launches = 1
    while "backoff" in (stage.exit(exit_code=1) and stage.state()):
        stage.now += 1000.0
        stage.tell(TimerFired("s1", TimerKind.HOLD))
        stage.end()
        launches += 1
        stage.tell(make_launched(f"s1-{launches}", stage.now))

    assert launches == 1 + allowed
    assert stage.state() == "failed (saturated)"
    assert stage.session().hold == Hold(HoldReason.SATURATED, None)
    assert f"again after {allowed} restart{'s' if allowed > 1 else ''}:" in stage.session().why


def test_a_launch_that_was_stable_is_forgiven_when_it_dies() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    stage.now += ALWAYS.reset_after_s

    stage.exit(exit_code=1)

    assert stage.session().charges == 1


# Orphans


@pytest.mark.parametrize("what", ["pane", "server"])
def test_an_orphan_that_nothing_replaces_is_shown_and_left_alone(what: str) -> None:
    stage = running(NEVER)

    asked = stage.tell(Orphaned("s1-1", 1100.0, what))

    assert kinds(asked) == ["SetTimer"]  # it is looked at again
    assert stage.state() == "suspect"
    assert "vigil stop alpha ends it" in stage.session().why
    assert stage.session().vitals.axes[Axis.RUNTIME].value == "dead"
    assert stage.session().vitals.axes[Axis.SERVER].value == ("dead" if what == "server" else "alive")
    assert stage.intents == []


@pytest.mark.parametrize("policy", [ALWAYS, ON_FAILURE])
def test_an_orphan_that_is_to_be_replaced_is_ended_first_by_a_recorded_intent(policy: RestartPolicy) -> None:
    stage = running(policy)

    (effect,) = stage.tell(Orphaned("s1-1", 1100.0, "server"))

    assert isinstance(effect, EndLaunch)
    assert stage.state() == "ending"
    assert [(intent.verb, intent.cause, intent.actor) for intent in stage.intents] == [("replace", Cause.SERVER_DIED, "policy")]
    assert "CloseLaunch" in kinds(stage.exit(signal=9))
    assert (stage.state(), stage.deaths[0].cause, stage.session().charges) == ("crashed (backoff)", Cause.SERVER_DIED, 1)
    assert (stage.deaths[0].exit_code, stage.deaths[0].signal) == (None, None), "the status is the server's, never the agent's"
    assert stage.end() == []
    assert stage.state() == "crashed (backoff)"


def test_an_orphan_of_a_closed_pane_whose_server_lives_is_not_called_its_servers() -> None:
    stage = running(ALWAYS)

    stage.tell(Orphaned("s1-1", 1100.0, "pane", None, 1))
    stage.exit(signal=15, root_signal=1)

    death = stage.deaths[0]
    assert [(intent.verb, intent.cause) for intent in stage.intents] == [("replace", Cause.PANE_CLOSED)]
    assert (death.cause, death.signal, death.charged, stage.session().charges) == (Cause.PANE_CLOSED, 15, True, 1)
    assert death.evidence[0].text == "its pane was closed, and its tmux server lives on"
    assert "server.died" not in stage.log


def test_an_orphan_told_twice_is_told_once() -> None:
    stage = suspect()
    stage.tell(Orphaned("s1-1", 1101.0, "pane"))

    assert stage.log.count("session.orphaned") == 1


@pytest.mark.parametrize("situation", sorted(set(situations()) - {"starting", "running", "suspect"}))
def test_an_orphan_in_any_other_state_changes_nothing(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.machine.sessions["s1"]
    launch_id = before.launch.id if before.launch else "s1-1"

    assert stage.tell(Orphaned(launch_id, 1200.0, "pane")) == []
    assert stage.session() == before


def test_an_operators_stop_of_an_orphan_stops_it() -> None:
    stage = being_replaced()
    stage.ask("stop")
    stage.exit(signal=15)

    stage.end()

    assert stage.state() == "stopped"
