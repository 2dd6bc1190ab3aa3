"""Whatever happens to the pane or its server, the agent goes with it and leaves one death."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from tests.live.instance import VIGIL, Instance, alive, wait_for

HANGUPS = {  # what is done: the cause it must have, exit code and signal of the record
    "kill-pane": ("pane-closed", None, 1),
    "kill-session": ("pane-closed", None, 1),
    "kill-server": ("server-died", 0, None),
    "TERM": ("server-died", 0, None),
    "KILL": ("server-died", None, 9),
    "SEGV": ("server-died", None, 11),
}


@pytest.mark.soak
@pytest.mark.parametrize("what", HANGUPS)
def test_a_hangup_ends_the_agent_within_a_second_and_leaves_one_death(shared: Instance, repeats: int, what: str) -> None:
    cause, code, number = HANGUPS[what]
    for n in range(repeats):
        session = shared.run(f"hangup-{what.lower()}-{n}", "sleep", "1000")
        name = session["name"]

        began = time.monotonic()
        if what.startswith("kill-"):
            shared.tmux(name, what)
        else:
            os.kill(session["server_pid"], getattr(signal, f"SIG{what}"))
        wait_for(lambda pid=session["pid"]: not alive(pid), 5, "the agent to go")  # type: ignore[misc]
        took_s = time.monotonic() - began

        death = shared.wait_death(name)
        assert took_s < 1, took_s
        assert (death["cause"], death["exit_code"], death["signal"]) == (cause, code, number), death
        assert not alive(session["server_pid"]) or what in ("kill-pane", "kill-session")
        shared.client.rm(name)


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_an_agent_heeds_hangups_when_vigil_was_started_under_nohup(vigil: Instance, runtime: str) -> None:
    words = [*VIGIL, "run", "--name", "heeds", "--runtime", runtime, "-o", "json", "--", "sleep", "1000"]
    ignoring = ["/bin/sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh"]  # as nohup and a script's `&` do
    started = subprocess.run([*ignoring, *words], env=vigil.env, capture_output=True, check=True, timeout=60)
    session = json.loads(started.stdout)
    assert signal.SIGHUP in _ignored(vigil.daemon_pid), "the test must start Vigil as nohup does"
    assert not _ignored(session["pid"]) & {signal.SIGHUP, signal.SIGINT}

    os.kill(session["server_pid"] or session["pid"], signal.SIGKILL if runtime == "tmux" else signal.SIGHUP)

    death = vigil.wait_death("heeds")
    assert not alive(session["pid"])
    assert (death["cause"], death["signal"]) == (("server-died", 9) if runtime == "tmux" else ("killed-by-unknown", 1))


def test_an_agent_that_outlives_its_server_is_shown_and_not_killed(shared: Instance) -> None:
    session = shared.run("deaf", "sh", "-c", "trap '' HUP; echo ready; while :; do sleep 0.1; done")
    wait_for(lambda: "ready" in shared.ok("logs", "deaf"), 10, "the agent to be ready")

    os.kill(session["server_pid"], signal.SIGKILL)

    suspect = shared.wait_state("deaf", "suspect")
    assert alive(session["pid"])
    assert suspect["pid"] == session["pid"]
    assert "outlived its server" in suspect["why"]
    assert (suspect["axes"]["server"]["value"], suspect["axes"]["process"]["value"]) == ("dead", "alive")
    assert shared.deaths("deaf") == []

    shared.client.ask("stop", "deaf")

    assert not alive(session["pid"])
    assert shared.wait_death("deaf")["cause"] == "operator"


def test_an_agent_that_outlives_its_server_is_ended_before_its_replacement(shared: Instance) -> None:
    script = "trap '' HUP; echo ready; while :; do sleep 0.1; done"
    session = shared.run("deaf-back", "sh", "-c", script, restart="always", backoff_base_s=0.2)
    wait_for(lambda: "ready" in shared.ok("logs", "deaf-back"), 10, "the agent to be ready")

    os.kill(session["server_pid"], signal.SIGKILL)

    back = wait_for(lambda: _of_second_launch(shared, "deaf-back"), 20, "the replacement")
    assert back["pid"] != session["pid"]
    assert not alive(session["pid"])
    death = shared.deaths("deaf-back")[0]
    assert (death["cause"], death["signal"], death["charged"]) == ("server-died", 9, True)
    shared.client.rm("deaf-back")


def test_a_pane_root_killed_alone_takes_the_agent_with_it(shared: Instance) -> None:
    session = shared.run("rootless", "sleep", "1000")
    root = int(shared.tmux("rootless", "list-panes", "-F", "#{pane_pid}").stdout)

    os.kill(root, signal.SIGKILL)

    death = shared.wait_death("rootless")
    assert (death["cause"], death["signal"], death["charged"]) == ("pane-closed", 1, True)
    assert any("pane's root was ended by SIGKILL" in line["text"] for line in death["evidence"])
    assert not alive(session["pid"])


@pytest.mark.parametrize("how", ["a hangup of its root", "kill-pane"])
def test_an_agent_that_outlives_its_closed_pane_is_replaced_for_that_and_its_server_is_not_blamed(
    shared: Instance, how: str
) -> None:
    name = f"deaf-{how[0]}"
    script = "trap '' HUP; echo ready; while :; do sleep 0.1; done"
    session = shared.run(name, "sh", "-c", script, restart="always", backoff_base_s=0.2)
    wait_for(lambda: "ready" in shared.ok("logs", name), 10, "the agent to be ready")
    root = int(shared.tmux(name, "list-panes", "-F", "#{pane_pid}").stdout)

    if how == "kill-pane":
        shared.tmux(name, "kill-pane")
    else:
        os.kill(root, signal.SIGHUP)

    wait_for(lambda: _of_second_launch(shared, name), 20, "the replacement", lambda: shared.get(name))
    assert not alive(session["pid"])
    death = shared.deaths(name)[0]
    assert (death["cause"], death["signal"], death["charged"], death["confidence"]) == ("pane-closed", 15, True, "certain")
    assert [event for event in shared.client.events(name) if event["kind"] == "server.died"] == []
    assert shared.client.incidents() == [] or all(one["kind"] != "server-died" for one in shared.client.incidents())
    shared.client.rm(name)


def test_an_agent_that_answers_the_end_of_its_pane_with_an_exit_died_of_that(shared: Instance) -> None:
    session = shared.run("answers", "sh", "-c", "trap 'exit 0' HUP; echo ready; while :; do sleep 0.1; done")
    wait_for(lambda: "ready" in shared.ok("logs", "answers"), 10, "the agent to be ready")

    shared.tmux("answers", "kill-pane")

    death = shared.wait_death("answers")
    assert (death["cause"], death["exit_code"], death["charged"]) == ("pane-closed", 0, True), death
    assert alive(session["server_pid"]) or shared.get("answers")["state"] == "failed"


def _of_second_launch(vigil: Instance, name: str) -> dict[str, object] | None:
    session = vigil.get(name)
    return session if session["state"] == "running" and session["launch"].endswith("-2") else None


def _ignored(pid: int) -> set[signal.Signals]:
    """Read which signals a process ignores; those without a name are the C library's own."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        mask = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn:"))
    return {number for number in signal.Signals if mask >> (number - 1) & 1}
