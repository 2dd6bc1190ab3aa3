"""A dead agent's number is nobody's mark: whoever has it next is another, and a thread that has it is no process."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.live.instance import VIGIL, Instance, kill, wait_for
from tests.live.recycled import run_as, thread_with


def test_a_person_whose_process_has_a_dead_agents_number_is_obeyed(vigil: Instance) -> None:
    agent = vigil.run("dead", "sleep", "1000")["pid"]
    kill(agent, signal.SIGKILL)
    vigil.wait_death("dead")

    done = run_as(agent, [*VIGIL, "run", "--name", "mine", "--", "sleep", "1000"], vigil.env)

    assert (done.returncode, done.stderr) == (0, "")
    assert vigil.get("mine")["state"] == "running"


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_a_session_whose_dead_agents_number_is_a_threads_comes_back_and_can_be_removed(vigil: Instance, runtime: str) -> None:
    command = ("sleep", "1000")
    agent = vigil.run("back", *command, runtime=runtime, restart="always", backoff_base_s=3.0)["pid"]
    kill(agent, signal.SIGKILL)

    with thread_with(agent):
        wait_for(lambda: _of_launch(vigil, "back", 2), 20, "the second launch", lambda: vigil.get("back"))
        assert [death["cause"] for death in vigil.deaths("back")] == ["killed-by-unknown"]
        assert vigil.json("rm", "back")["name"] == "back"


@pytest.mark.parametrize("verb", ["stop", "restart", "rm"])
def test_a_dead_session_obeys_though_its_agents_number_is_a_threads(vigil: Instance, verb: str) -> None:
    agent = vigil.run("dead", "sleep", "1000")["pid"]
    kill(agent, signal.SIGKILL)
    vigil.wait_death("dead")

    with thread_with(agent):
        done = vigil.run_cli(verb, "dead")

        assert done.returncode == 0, done.stderr


def test_a_new_daemon_finds_an_agent_dead_whose_number_is_a_threads(vigil: Instance) -> None:
    agent = vigil.run("dead", "sleep", "1000")["pid"]
    vigil.kill_daemon()
    vigil.kill_keeper()  # nobody records it
    kill(agent, signal.SIGKILL)

    with thread_with(agent):
        vigil.start()

        assert vigil.wait_death("dead")["launch"] == vigil.get("dead")["launch"]
        assert vigil.get("dead")["state"] == "failed"


def _of_launch(vigil: Instance, name: str, number: int) -> dict[str, Any] | None:
    session = vigil.get(name)
    return session if session["state"] == "running" and session["launches"] == number else None
