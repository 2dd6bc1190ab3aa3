"""What follows once a launch that was ended is verified gone, or is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import (
    ALWAYS,
    NEVER,
    ON_FAILURE,
    SITUATIONS,
    being_removed,
    being_replaced,
    being_restarted,
    being_stopped,
    kinds,
    make_exit,
    make_launched,
    only_spawn,
    running,
    situations,
    starting,
    stuck,
)
from vigil.core.effects import Persist, Purge
from vigil.core.events import Ended, Exited
from vigil.core.model.death import Cause
from vigil.core.model.reading import Axis
from vigil.core.model.restart import RestartPolicy
from vigil.core.model.session import State

# What came of ending


@pytest.mark.parametrize(
    ("situation", "state", "asked"),
    [
        ("being_stopped", "stopped", []),
        ("being_restarted", "starting", ["Spawn"]),
        ("being_removed", "removed", ["Purge"]),
        ("coming_back", "starting", ["Spawn"]),
        ("crashed_and_coming_back", "starting", ["Spawn"]),
    ],
)
def test_what_was_waited_for_follows_once_everything_is_verified_gone(situation: str, state: str, asked: list[str]) -> None:
    stage = SITUATIONS[situation]()
    stage.exit(signal=15)

    assert kinds(stage.end()) == asked
    assert stage.state() == state


@pytest.mark.parametrize("situation", [*situations(State.ENDING), "coming_back", "crashed_and_coming_back"])
def test_what_cannot_be_ended_is_stuck_and_says_why(situation: str) -> None:
    stage = SITUATIONS[situation]()

    assert kinds(stage.end(ok=False)) == []

    assert stage.state() == "stuck"
    assert "pid 100 lives on after KILL" in stage.session().why


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize(
    "situation",
    sorted(
        set(situations()) - set(situations(State.ENDING)) - {"coming_back", "crashed_and_coming_back", "waiting_for_its_turn"}
    ),
)
def test_an_end_that_nobody_waits_for_changes_nothing(situation: str, ok: bool) -> None:
    stage = SITUATIONS[situation]()
    before = stage.session()
    over = before.launch is not None and before.launch.ended_at is not None

    assert set(kinds(stage.end(ok))) <= {"Persist"}
    after = stage.session()
    assert replace(after, launch=before.launch) == before
    if after.launch is not None:
        assert after.launch.closed == ((before.launch is not None and before.launch.closed) or (ok and over))


@pytest.mark.parametrize(("verb", "state"), [("stop", "stopped"), ("restart", "starting"), ("rm", "removed")])
def test_an_operator_gets_a_stuck_session_out(verb: str, state: str) -> None:
    stage = stuck()

    assert kinds(stage.ask(verb)) == ["EndLaunch"]
    stage.exit(signal=9)
    stage.end()

    assert stage.state() == state


def test_a_restart_is_a_new_launch_with_its_own_number() -> None:
    stage = being_restarted()
    stage.exit(signal=15)

    spawn = only_spawn(stage.end())

    assert (spawn.launch.id, spawn.launch.number) == ("s1-2", 2)
    assert (spawn.session.vitals.intent, spawn.session.after, spawn.session.hold) == (None, None, None)
    assert set(spawn.session.vitals.axes) == {Axis.ACTIVITY}, "nothing was read of it yet"
    assert spawn.session.last_death is not None


def test_an_intent_of_one_launch_does_not_speak_for_the_next() -> None:
    stage = being_restarted(ON_FAILURE)
    stage.exit(signal=15)
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))

    stage.exit(signal=15)

    assert [death.cause for death in stage.deaths] == [Cause.OPERATOR, Cause.KILLED_BY_UNKNOWN]


# Ends that are verified before the exit is told, and exits of what could not be ended


WHENS = pytest.mark.parametrize("policy", [ALWAYS, ON_FAILURE, NEVER], ids=lambda policy: policy.when)


@WHENS
def test_a_stopped_session_stays_stopped_when_its_exit_is_told_late(policy: RestartPolicy) -> None:
    stage = being_stopped(policy)
    stage.end()

    stage.exit(signal=15)

    assert stage.state() == "stopped"
    assert [death.cause for death in stage.deaths] == [Cause.OPERATOR]


@WHENS
def test_a_restarted_launch_leaves_its_death_also_when_its_exit_is_told_late(policy: RestartPolicy) -> None:
    stage = being_restarted(policy)
    stage.end()

    stage.tell(Exited(make_exit("s1-1", exit_code=0)))

    assert stage.state() == "starting"
    assert [death.launch_id for death in stage.deaths] == ["s1-1"]


def test_a_removed_session_leaves_its_death_and_nothing_else_when_its_exit_is_told_late() -> None:
    stage = being_removed()

    (persist, _examine, purge) = stage.machine.handle(Ended("s1-1", ok=True), stage.now)

    assert isinstance(persist, Persist)
    assert isinstance(purge, Purge)
    assert (persist.sessions, persist.launches, persist.intents) == ((), (), ()), "it would be stored again"
    assert persist.removed == ("s1",)
    assert [death.cause for death in persist.deaths] == [Cause.OPERATOR]


def test_an_orphan_whose_exit_nobody_told_is_charged_once_it_is_verified_gone() -> None:
    stage = being_replaced()

    stage.end()

    assert (stage.state(), stage.session().charges) == ("crashed (backoff)", 1)
    assert [death.cause for death in stage.deaths] == [Cause.SERVER_DIED]
    assert stage.deaths[0].evidence


def test_a_stop_after_the_end_was_verified_and_before_the_exit_was_told_is_not_waited_for_for_ever() -> None:
    stage = being_replaced()
    stage.end()

    stage.ask("stop")
    stage.exit(signal=9)
    stage.end()

    assert stage.state() == "stopped"
    assert len(stage.deaths) == 1


@WHENS
@pytest.mark.parametrize(("verb", "state"), [("stop", "stopped"), ("restart", "starting"), ("rm", "removed")])
def test_what_could_not_be_ended_and_dies_at_last_becomes_what_was_asked(policy: RestartPolicy, verb: str, state: str) -> None:
    stage = running(policy)
    stage.ask(verb)
    stage.end(ok=False)

    asked = stage.exit(signal=9)

    assert (stage.state(), kinds(asked)) == ("ending", ["EndLaunch"])
    stage.end()
    assert stage.state() == state
    assert [(death.cause, death.charged) for death in stage.deaths] == [(Cause.OPERATOR, False)]


def test_what_died_before_its_birth_was_told_is_ended_when_it_is_asked_for_again() -> None:
    stage = starting()
    stage.ask("stop")
    stage.exit(signal=9)  # told before the birth
    stage.end(ok=False)

    assert kinds(stage.ask("stop")) == ["EndLaunch"]
    stage.tell(make_launched())
    stage.end()

    assert stage.state() == "stopped"
