"""Ends of headless clients: seen at once, with their true cause, and nothing of them is left."""

from __future__ import annotations

import signal
import time
from functools import partial

from tests.live.instance import alive, command_of, kill, wait_for
from tests.live.watching import at
from tests.real.clients import Client
from tests.real.model_api.script import WORKS_S
from tests.real.stage import READY_S, Played, Stage

SEEN_S = 5.0  # the promise is milliseconds, on a machine that does nothing else
OBSERVED_S = 40.0  # the next look at all sessions


def test_a_killed_client_is_dead_at_once(stage: Stage, client: Client) -> None:
    played = stage.run(client, "stall")
    played.wait_asked()
    pid = stage.vigil.get(played.name)["pid"]

    killed_at = time.time()
    kill(pid, signal.SIGKILL)

    death = stage.vigil.wait_death(played.name, within_s=SEEN_S)
    assert (death["cause"], death["signal"]) == ("killed-by-unknown", signal.SIGKILL)
    assert killed_at - 0.1 <= at(death["at"]) <= killed_at + 1
    assert stage.vigil.get(played.name)["state"] == "failed"
    played.wait_hung_up()


def test_a_client_that_hears_nothing_more_is_alive_and_nothing_is_charged(stage: Stage, claude: Client) -> None:
    scenarios = ("stall", "hang")
    played = [stage.run(claude, scenario, "--restart", "on-failure") for scenario in scenarios]
    for one in played:
        one.wait_asked()
    silent_since = time.time()

    for one in played:
        wait_for(partial(_was_looked_at, one, silent_since + 1), OBSERVED_S, f"Vigil to look at {one.name}")
        session = one.session
        assert (session["state"], session["axes"]["process"]["value"]) == ("running", "alive")
        assert (session["restarts"]["count"], session["last_death"]) == (0, None)
        assert [request.ended for request in one.asked] == [""]


def test_a_stopped_client_ends_by_itself_and_is_never_charged(stage: Stage, client: Client) -> None:
    played = stage.run(client, "stall", "--restart", "always")
    played.wait_asked()

    stage.vigil.ok("stop", played.name)

    session = played.session
    assert (session["state"], session["last_death"]["cause"], session["restarts"]["count"]) == ("stopped", "operator", 0)
    played.wait_hung_up()


def test_the_tools_of_a_killed_client_are_ended_before_its_replacement(stage: Stage, claude: Client) -> None:
    command = [*claude.asked("look at it"), "--allowedTools", "Bash"]
    options = ("--runtime", "headless", "--restart", "on-failure", "--backoff-base", "2")
    played = stage.run(claude, "long-tool", *options, command=command)
    tool = wait_for(lambda: _tool_of(played), READY_S, "its tool to run")
    first = stage.vigil.get(played.name)

    kill(first["pid"], signal.SIGKILL)

    assert alive(tool), "it would be no proof: the tool died with its agent"
    wait_for(lambda: stage.vigil.get(played.name)["launch"] != first["launch"], READY_S, "the replacement")
    assert not alive(tool)
    assert stage.vigil.wait_state(played.name, "succeeded", within_s=READY_S)["restarts"]["count"] == 1


def _was_looked_at(played: Played, after: float) -> bool:
    return at(played.vigil.get(played.name)["axes"]["process"]["observed_at"]) > after


def _tool_of(played: Played) -> int | None:
    sleeps = f"time.sleep({WORKS_S})".encode()
    found = (pid for pid in played.vigil.processes() if sleeps in command_of(pid) and command_of(pid).startswith(b"python3"))
    return next(found, None)
