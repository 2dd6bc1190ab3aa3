"""An agent that is found below its command, and the pane it may leave open."""

from __future__ import annotations

import pytest

from tests.unit.builders import ALWAYS, NEVER, Stage, kinds, make_fact, make_launched, make_process, running, starting
from tests.unit.doubts import AGENT
from vigil.core.effects import CloseLaunch, Conclude, SetTimer, TimerKind
from vigil.core.events import Closed, Found, Observed, RuntimeEnded
from vigil.core.handlers.summary import LATEST_S
from vigil.core.model.death import Cause
from vigil.core.model.reading import Axis
from vigil.core.model.restart import RestartPolicy


def found_agent(policy: RestartPolicy = NEVER) -> Stage:
    """A session whose command runs its agent, which was found."""
    stage = starting(policy)
    stage.now = 1001.0
    stage.tell(make_launched(names=("claude",)))
    stage.now = 1003.0
    stage.tell(Found("s1-1", AGENT, make_fact(Axis.PROCESS, "alive", stage.now)))
    stage.now = 1100.0
    return stage


def test_a_session_whose_agent_is_still_to_be_found_is_starting_and_says_for_whom_it_waits() -> None:
    stage = starting()

    stage.tell(make_launched(names=("claude", "codex")))

    assert stage.state() == "starting"
    assert stage.session().why == "waits for claude or codex to run in it"


def test_a_session_runs_when_its_agent_was_found() -> None:
    stage = found_agent()

    assert stage.state() == "running"
    assert (stage.launch().found, stage.launch().agent, stage.launch().process) == (AGENT, AGENT, make_process(100))
    assert "session.agent-found" in stage.log
    assert stage.durable["s1"].launch == stage.launch()


def test_an_agent_is_found_once() -> None:
    stage = found_agent()

    stage.tell(Found("s1-1", make_process(111), make_fact(Axis.PROCESS, "alive", stage.now)))

    assert stage.launch().found == AGENT


def test_the_death_of_a_found_agent_is_concluded_for_the_agent_and_not_for_its_command() -> None:
    stage = found_agent()

    (conclude,) = stage.see(process="ended")

    assert isinstance(conclude, Conclude)
    assert conclude.launch.agent == AGENT


@pytest.mark.parametrize("policy", [NEVER, ALWAYS])
def test_the_pane_that_a_found_agent_left_open_is_not_closed_before_it_ends_by_itself(policy: RestartPolicy) -> None:
    stage = found_agent(policy)

    asked = stage.exit(exit_code=1)

    assert "CloseLaunch" not in kinds(asked)
    (death,) = stage.deaths
    assert death.cause is Cause.CRASH
    assert stage.tell(RuntimeEnded("s1-1")) == [CloseLaunch(stage.launch())]


def test_a_pane_that_ended_with_its_agent_is_closed_at_once() -> None:
    stage = found_agent()
    stage.tell(Observed("s1-1", (make_fact(Axis.RUNTIME, "ended", stage.now),)))

    asked = stage.exit(exit_code=0)

    assert kinds(asked) == ["CloseLaunch"]


def test_a_pane_whose_command_was_the_agent_itself_is_closed_at_once() -> None:
    stage = running()
    stage.see()

    asked = stage.exit(exit_code=0)

    assert kinds(asked) == ["CloseLaunch"]


def test_that_a_pane_ended_says_nothing_while_its_agent_is_not_known_to_be_dead() -> None:
    stage = found_agent()
    before = stage.session()

    assert stage.tell(RuntimeEnded("s1-1")) == []
    assert stage.session() == before


def test_a_pane_that_was_closed_is_not_closed_again() -> None:
    stage = found_agent()
    stage.exit(exit_code=0)
    stage.tell(RuntimeEnded("s1-1"))
    stage.tell(Closed("s1-1", (make_fact(Axis.RUNTIME, "ended", stage.now),)))

    assert stage.launch().closed
    assert stage.tell(RuntimeEnded("s1-1")) == []


def test_a_stop_ends_what_a_dead_agent_left_open() -> None:
    stage = found_agent()
    stage.exit(exit_code=0)
    assert stage.state() == "succeeded"

    asked = stage.ask("stop")

    assert stage.state() == "ending"
    assert kinds(asked) == ["EndLaunch"]

    stage.end()

    assert stage.state() == "stopped"
    assert stage.launch().closed
    assert len(stage.deaths) == 1


def test_a_new_daemon_leaves_the_pane_of_a_dead_agent_open_too() -> None:
    stage = found_agent()
    stage.exit(exit_code=0)

    assert stage.restart() == [SetTimer("s1", TimerKind.SUMMARY, stage.now + LATEST_S)]
    assert stage.tell(RuntimeEnded("s1-1")) == [CloseLaunch(stage.launch())]
