"""A headless run that is answered: it finishes, and nothing is charged."""

from __future__ import annotations

from tests.real.clients import Client
from tests.real.stage import READY_S, Stage


def test_a_client_that_was_answered_has_finished(stage: Stage, client: Client) -> None:
    played = stage.run(client, "answer", "--restart", "on-failure")

    session = stage.vigil.wait_state(played.name, "succeeded", "failed", "crashed", within_s=READY_S)
    assert session["state"] == "succeeded", session["why"]
    assert (session["last_death"]["cause"], session["last_death"]["exit_code"]) == ("finished", 0)
    assert session["restarts"]["count"] == 0
    assert played.asked[0].ended == "as scripted"


def test_a_client_runs_its_tool_and_finishes(stage: Stage, claude: Client) -> None:
    command = [*claude.asked("look at it"), "--allowedTools", "Bash"]

    played = stage.run(claude, "tool", "--runtime", "headless", command=command)

    assert stage.vigil.wait_state(played.name, "succeeded", "failed", within_s=READY_S)["state"] == "succeeded"
    assert (played.seat.cwd / "made-by-a-tool").exists()
    assert [request.did for request in played.asked] == ["use", "say"]


def test_an_answer_that_comes_slowly_is_waited_for(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "slow", "--restart", "on-failure")
    played.wait_asked()

    assert stage.vigil.get(played.name)["state"] == "running"

    assert stage.vigil.wait_state(played.name, "succeeded", "failed", within_s=READY_S)["state"] == "succeeded"


def test_what_goes_wrong_twice_and_then_well_is_the_clients_own_affair(stage: Stage, claude: Client) -> None:
    troubles = ("limit-twice", "overload-twice", "failure-twice", "unavailable-twice", "reset-twice")
    played = [stage.run(claude, scenario, "--restart", "on-failure") for scenario in troubles]

    for one in played:
        session = stage.vigil.wait_state(one.name, "succeeded", "failed", "crashed", within_s=READY_S)
        assert (session["state"], session["restarts"]["count"]) == ("succeeded", 0), session["why"]
        assert len(one.asked) == 3
