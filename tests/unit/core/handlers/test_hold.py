"""Holds that end, counts that are forgiven, and what a new daemon takes up again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import (
    ALWAYS,
    SITUATIONS,
    Stage,
    being_stopped_while_it_starts,
    crashed,
    crashed_and_coming_back,
    kinds,
    make_exit,
    make_launch,
    make_launched,
    make_session,
    only_spawn,
    only_timer,
    running,
    situations,
    starting,
    waiting_for_its_turn,
)
from vigil.core.effects import SetTimer, TimerKind
from vigil.core.events import Exited, Interrupted, Resumed, TimerFired
from vigil.core.handlers.admission import PACE
from vigil.core.machine import Machine
from vigil.core.model.death import Cause, Wall
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import ALIVE, State

# Time


@pytest.mark.parametrize("situation", ["crashed", "finished_and_coming_back"])
def test_a_hold_that_is_told_early_is_waited_for_again(situation: str) -> None:
    stage = SITUATIONS[situation]()
    hold = stage.session().hold
    assert hold is not None
    assert hold.until is not None
    stage.now = hold.until - 0.001

    assert stage.tell(TimerFired("s1", TimerKind.HOLD)) == [SetTimer("s1", TimerKind.HOLD, hold.until)]
    stage.now = hold.until
    assert kinds(stage.tell(TimerFired("s1", TimerKind.HOLD))) == ["EndLaunch"]


@pytest.mark.parametrize("situation", sorted(set(situations()) - {"crashed", "finished_and_coming_back"}))
def test_a_hold_that_is_told_late_to_another_state_changes_nothing(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.session()
    stage.now = 1e9

    assert stage.tell(TimerFired("s1", TimerKind.HOLD)) == []
    assert stage.session() == before


def test_a_timer_of_a_session_that_is_gone_does_nothing() -> None:
    for kind in (TimerKind.HOLD, TimerKind.STABLE):
        assert Machine().handle(TimerFired("nobody", kind), 1000.0) == []


def test_a_launch_that_has_been_up_long_enough_is_forgiven() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    timer = only_timer(stage.tell(make_launched("s1-2", stage.now)))
    stage.now = timer.at

    stage.tell(TimerFired("s1", TimerKind.STABLE))

    assert stage.session().charges == 0
    assert stage.durable["s1"].charges == 0


def test_a_stable_timer_that_is_told_early_is_waited_for_again() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    timer = only_timer(stage.tell(make_launched("s1-2", stage.now)))
    stage.now = timer.at - 0.001

    asked = stage.tell(TimerFired("s1", TimerKind.STABLE))

    assert stage.session().charges == 1
    assert asked == [timer]


def test_a_stable_timer_of_the_launch_before_forgives_nothing() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    stage.exit(exit_code=1)
    stage.now += 590.0
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    stage.end()
    stage.tell(make_launched("s1-3", stage.now))
    stage.now += 20.0

    stage.tell(TimerFired("s1", TimerKind.STABLE))

    assert stage.session().charges == 2


# A new daemon


RESUMED = {
    "starting": ("starting", []),
    "waiting_for_its_turn": ("pending (pace)", []),
    "running": ("running", []),
    "suspect": ("suspect", ["SetTimer"]),
    "stuck": ("stuck", []),
    "being_stopped": ("ending", ["EndLaunch"]),
    "being_stopped_while_it_starts": ("ending", ["EndLaunch"]),
    "being_restarted": ("ending", ["EndLaunch"]),
    "being_parked": ("ending", ["EndLaunch"]),
    "being_removed": ("ending", ["EndLaunch"]),
    "being_replaced": ("ending", ["EndLaunch"]),
    "finished_and_coming_back": ("pending (backoff)", ["CloseLaunch", "SetTimer"]),
    "coming_back": ("pending (survivor)", ["EndLaunch"]),
    "crashed": ("crashed (backoff)", ["CloseLaunch", "SetTimer"]),
    "crashed_and_coming_back": ("crashed (survivor)", ["EndLaunch"]),
    "parked": ("parked", []),
    "stopped": ("stopped", []),
    "failed": ("failed", ["CloseLaunch"]),
    "launch_failed": ("failed", ["CloseLaunch"]),
    "saturated": ("failed (saturated)", ["CloseLaunch"]),
    "succeeded": ("succeeded", ["CloseLaunch"]),
}


def resumed(stage: Stage) -> Stage:
    """A new daemon over what the last one made durable."""
    stored = {**stage.durable, "s1": stage.session()}
    return Stage(stored.values(), stage.now)


@pytest.mark.parametrize("situation", RESUMED)
def test_a_new_daemon_takes_up_what_was_under_way(situation: str) -> None:
    stage = resumed(SITUATIONS[situation]())
    state, asked = RESUMED[situation]

    effects = stage.tell(Resumed())

    assert set(RESUMED) == set(SITUATIONS)
    assert (stage.state(), kinds(effects)) == (state, asked)
    assert stage.deaths == []


def test_a_wait_is_no_longer_than_its_policy_though_the_clock_was_set_back() -> None:
    stage = resumed(crashed())
    stage.now -= 86400.0

    timer = only_timer(stage.tell(Resumed()))

    longest_s = ALWAYS.cap_s * (1 + ALWAYS.jitter)
    assert timer.at == stage.now + longest_s
    hold = stage.session().hold
    assert hold is not None and hold.until == timer.at


def test_what_a_session_did_before_the_clock_was_set_back_was_done_now() -> None:
    stage = running()
    stage.hear("idle")
    stage = resumed(stage)
    stage.now -= 86400.0

    stage.tell(Resumed())

    assert stage.session().last_activity_at == stage.now
    assert set(stage.session().worked.values()) == {stage.now}


@pytest.mark.parametrize("met_since", [True, False])
def test_a_clock_that_was_set_back_leaves_a_wall_and_a_persons_word_in_their_order(met_since: bool) -> None:
    stage = resumed(running())
    asked_at = stage.now + 3600.0
    wall = Wall(Cause.LIMIT, "limit", asked_at + (60.0 if met_since else -60.0), stage.launch().id, None)
    stage = Stage([replace(stage.session(), asked_at=asked_at, wall=wall)], stage.now)

    stage.tell(Resumed())

    session = stage.session()
    assert session.wall is not None and session.asked_at is not None
    assert max(session.wall.at, session.asked_at) <= stage.now
    assert (session.wall.at > session.asked_at) == met_since
    assert [incident.kind for incident in stage.machine.incidents.values()] == (["limit"] if met_since else [])


def test_who_asks_again_goes_on_with_what_was_begun() -> None:
    stage = running()
    stage.ask("restart")
    stage.now += 30.0
    stage.ask("stop")

    assert [(intent.verb, intent.at) for intent in stage.intents] == [("restart", stage.now - 30.0), ("stop", stage.now - 30.0)]


def test_a_start_of_what_could_not_be_stopped_is_obeyed_when_it_is_gone() -> None:
    stage = SITUATIONS["stuck"]()

    stage.ask("start")
    stage.exit(signal=9)

    assert kinds(stage.end()) == ["Spawn"]


def test_a_start_changes_nothing_of_a_session_that_is_stuck_and_alive() -> None:
    stage = running()
    for _ in range(10):
        stage.see(server="wedged")
        stage.now += 10.0
    assert stage.state() == "stuck"

    assert stage.ask("start") == []

    assert stage.state() == "stuck"


def test_a_crash_that_somebody_was_about_to_end_is_charged_all_the_same() -> None:
    stage = running(ALWAYS)
    ended_at = stage.now
    stage.now += 0.2
    stage.ask("restart")

    stage.tell(Exited(make_exit("s1-1", ended_at, exit_code=3)))

    assert stage.deaths[-1].cause is Cause.CRASH
    assert stage.session().charges == 1


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_new_daemon_charges_nobody_and_spawns_nothing_that_lives(situation: str) -> None:
    before = SITUATIONS[situation]()
    stage = resumed(before)

    effects = stage.tell(Resumed())

    assert stage.session().charges == before.session().charges
    if before.session().state in ALIVE:
        assert "Spawn" not in kinds(effects)


def test_a_launch_that_the_daemons_own_end_interrupted_is_ordered_now_and_charges_nobody() -> None:
    stage = resumed(starting())
    stage.tell(Resumed())

    assert only_spawn(stage.tell(Interrupted("s1-1"))).launch.id == "s1-1"

    assert (stage.state(), stage.session().charges, stage.deaths) == ("starting", 0, [])


@pytest.mark.parametrize("situation", sorted({*SITUATIONS} - {"starting", "waiting_for_its_turn"}))
def test_only_a_launch_under_way_can_be_interrupted(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.session()

    assert stage.tell(Interrupted(stage.launch().id)) == []
    assert stage.session() == before


def test_an_interrupted_launch_keeps_its_place() -> None:
    stage = resumed(waiting_for_its_turn())
    stage.tell(Resumed())

    assert only_spawn(stage.tell(Interrupted("other0-1"))).launch.id == "other0-1"
    assert stage.tell(Interrupted("other0-1")) == [], "heard again it is not ordered twice"


def test_what_is_adopted_has_been_up_since_it_was_launched() -> None:
    stage = resumed(running())
    stage.tell(Resumed())

    stage.tell(make_launched(at=5000.0, adopted=True))

    assert stage.launch().started_at == 1001.0


@pytest.mark.parametrize("situation", ["running", "suspect", "starting"])
def test_a_new_daemon_adopts_what_lives_under_the_same_launch(situation: str) -> None:
    stage = resumed(SITUATIONS[situation]())
    stage.tell(Resumed())

    assert stage.tell(make_launched(at=1001.0, adopted=True)) == []

    assert stage.state() == ("suspect" if situation == "suspect" else "running")
    assert (stage.launch().id, stage.launch().started_at, stage.deaths) == ("s1-1", 1001.0, [])


def test_a_new_daemon_that_adopts_a_session_with_charges_waits_until_it_is_stable() -> None:
    before = crashed_and_coming_back()
    before.end()
    before.tell(make_launched("s1-2", 2000.0))
    stage = resumed(before)
    stage.tell(Resumed())

    timer = only_timer(stage.tell(make_launched("s1-2", 2000.0, adopted=True)))

    assert timer.at == 2000.0 + ALWAYS.reset_after_s


def test_what_was_being_stopped_when_the_daemon_died_is_ended_if_it_was_born_meanwhile() -> None:
    stage = resumed(being_stopped_while_it_starts())
    stage.tell(Resumed())

    assert kinds(stage.tell(make_launched(adopted=True))) == ["EndLaunch"]


def test_a_hold_that_ended_while_no_daemon_ran_ends_at_once() -> None:
    stage = resumed(crashed())
    hold = stage.session().hold
    assert hold is not None
    stage.now = 9000.0

    assert stage.tell(Resumed())[1:] == [SetTimer("s1", TimerKind.HOLD, hold.until or 0.0)]
    assert kinds(stage.tell(TimerFired("s1", TimerKind.HOLD))) == ["EndLaunch"]


def test_a_session_that_was_declared_and_never_launched_is_launched_by_the_next_daemon() -> None:
    stage = Stage([make_session(State.PENDING)])

    assert kinds(stage.tell(Resumed())) == ["Spawn"]


def test_a_launch_under_way_takes_its_place_also_after_a_restart_of_the_daemon() -> None:
    """Whatever order the store returns them in."""
    launching = [make_session(State.STARTING, id=f"a{i}", name=f"a{i}", launch=make_launch(f"a{i}")) for i in range(PACE)]
    waiting = [make_session(State.PENDING, id=f"b{i}", name=f"b{i}", hold=Hold(HoldReason.PACE, None)) for i in range(PACE)]
    for order in (launching + waiting, waiting + launching):
        effects = Stage(order).tell(Resumed())

        assert kinds(effects) == [], "more than four launches at once"


# Ends that are verified before the exit is told, and exits of what could not be ended


def test_a_hold_that_waits_for_a_person_is_not_ended_by_a_new_daemon() -> None:
    held = make_session(
        State.PENDING, hold=Hold(HoldReason.LIMIT, None), launch=make_launch(ended_at=1100.0, closed=True), launches=1
    )

    assert kinds(Stage([held]).tell(Resumed())) == []
