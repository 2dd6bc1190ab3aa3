"""Clients in a terminal: an agent that dies below a living shell is dead at once."""

from __future__ import annotations

import signal

from tests.live.instance import Instance, kill, wait_for
from tests.live.watching import values
from tests.real.clients import Client
from tests.real.stage import PROMPT, READY_S, Stage, below_a_shell

SEEN_S = 5.0


def name_processes(vigil: Instance, client: Client) -> None:
    """Say what the agent's own process is called, so that it is found below its shell."""
    vigil.config.write_text(f"[agents.{client.name}]\nprocess = ['{client.name}']\n")


def test_a_client_that_is_killed_below_a_living_shell_is_dead_at_once(stage: Stage, client: Client) -> None:
    name_processes(stage.vigil, client)
    played = stage.run(client, "stall", "--runtime", "tmux", command=below_a_shell(client.asked(PROMPT)))
    played.wait_asked()
    session = stage.vigil.wait_state(played.name, "running")

    kill(session["pid"], signal.SIGKILL)

    death = stage.vigil.wait_death(played.name, within_s=SEEN_S)
    session = stage.vigil.get(played.name)
    assert (death["cause"], death["signal"]) == ("killed-by-unknown", signal.SIGKILL)
    assert (session["state"], values(session)["runtime"], values(session)["process"]) == ("failed", "alive", "dead")
    played.wait_hung_up()


def test_a_full_screen_client_that_is_killed_is_dead_whatever_its_last_screen_says(stage: Stage, claude: Client) -> None:
    name_processes(stage.vigil, claude)
    played = stage.run(claude, "stall", "--runtime", "tmux", command=below_a_shell([str(claude.path), PROMPT]))
    played.wait_asked()
    wait_for(lambda: "esc to interrupt" in _screen(stage, played.name), READY_S, "it to show that it works")

    kill(stage.vigil.wait_state(played.name, "running")["pid"], signal.SIGKILL)

    assert stage.vigil.wait_death(played.name, within_s=SEEN_S)["cause"] == "killed-by-unknown"
    assert "esc to interrupt" in _screen(stage, played.name)
    assert values(stage.vigil.get(played.name))["process"] == "dead"


def test_a_full_screen_client_answers_and_lives_on(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "answer", "--runtime", "tmux", command=[str(claude.path), PROMPT])

    wait_for(lambda: "All done." in _screen(stage, played.name), READY_S, "its answer on the screen")

    session = played.session
    assert (session["state"], values(session)["process"]) == ("running", "alive")


def _screen(stage: Stage, name: str) -> str:
    return stage.vigil.tmux(name, "capture-pane", "-p").stdout
