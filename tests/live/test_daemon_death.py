"""The daemon may die at any instant: nothing is lost, nothing is doubled, nobody is charged (P10)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from datetime import datetime

import pytest

from tests.live.instance import Instance, alive, command_of, is_of_session, kill, wait_for

STATUSES = {
    "exit 0": (0, None),
    "exit 3": (3, None),
    "exit 137": (137, None),
    "kill -SEGV $$": (None, 11),
    "kill -KILL $$": (None, 9),
}


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_after_a_sigkill_of_the_daemon_the_same_sessions_run_on(vigil: Instance, runtime: str) -> None:
    before = {name: vigil.run(name, "sleep", "1000", runtime=runtime, restart="always") for name in ("one", "two", "three")}

    vigil.kill_daemon()
    found = vigil.json("ls")

    assert [session["name"] for session in found] == ["one", "three", "two"]
    for session in found:
        was = before[session["name"]]
        assert session["state"] == "running"
        assert (session["pid"], session["launch"], session["server_pid"]) == (was["pid"], was["launch"], was["server_pid"])
        assert session["restarts"]["count"] == 0
        assert session["last_death"] is None


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
@pytest.mark.parametrize("script", STATUSES)
def test_a_death_while_the_daemon_is_down_has_its_true_status_and_time(vigil: Instance, runtime: str, script: str) -> None:
    code, number = STATUSES[script]
    session = vigil.run("a", "sh", "-c", f"while [ ! -e {vigil.path}/go ]; do sleep 0.02; done; {script}", runtime=runtime)
    vigil.kill_daemon()

    (vigil.path / "go").touch()
    wait_for(lambda: not alive(session["pid"]), 10, "the agent to end")
    died_at = time.time()
    wait_for(lambda: (vigil.home.launch(session["launch"]) / "exit.json").exists(), 10, "the keeper's record")
    time.sleep(1.0)  # so that a wrong time of death can be told from the right one
    vigil.start()

    death = vigil.wait_death("a")
    assert (death["exit_code"], death["signal"], death["observed_by"]) == (code, number, "keeper")
    assert abs(datetime.fromisoformat(death["at"]).timestamp() - died_at) < 0.5


def test_a_server_that_dies_while_the_daemon_is_down_is_named_as_the_cause(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000")
    vigil.kill_daemon()

    kill(session["server_pid"], signal.SIGKILL)
    wait_for(lambda: (vigil.home.launch(session["launch"]) / "exit.json").exists(), 10, "the keeper's record")
    vigil.start()

    death = vigil.wait_death("a")
    assert (death["cause"], death["signal"], death["exit_code"]) == ("server-died", 9, None)


def test_a_backoff_goes_on_after_the_daemon_was_killed(vigil: Instance) -> None:
    vigil.run("a", "sh", "-c", "exit 3", restart="on-failure", backoff_base_s=10)
    before = vigil.wait_state("a", "crashed")

    vigil.kill_daemon()
    vigil.start()

    after = vigil.get("a")
    assert after["state"] == "crashed"
    assert after["restarts"]["next_attempt_at"] == before["restarts"]["next_attempt_at"]
    assert after["restarts"]["count"] == 1
    wait_for(lambda: vigil.get("a")["restarts"]["count"] == 2, 30, "the next attempt")


def test_a_stop_that_was_under_way_is_finished_by_the_next_daemon(vigil: Instance) -> None:
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    session = vigil.run("a", "sh", "-c", stubborn)
    wait_for(lambda: "ready" in vigil.ok("logs", "a"), 10, "the agent to be ready")
    import threading

    asking = threading.Thread(target=lambda: vigil.run_cli("stop", "a"))
    asking.start()
    vigil.wait_state("a", "ending")

    vigil.kill_daemon()
    asking.join()
    assert alive(session["pid"])
    vigil.start()

    vigil.wait_state("a", "stopped", within_s=30)
    assert not alive(session["pid"])
    death = vigil.wait_death("a")
    assert (death["cause"], death["intent"]["verb"], death["signal"]) == ("operator", "stop", 9)


@pytest.mark.soak
def test_the_daemon_killed_at_any_instant_of_a_launch_never_doubles_the_agent(vigil: Instance, repeats: int) -> None:
    for n in range(repeats):
        name = f"k{n}"
        vigil.start()
        pid = os.fork()
        if pid == 0:
            try:
                vigil.client.run({"name": name, "command": ["sleep", "1000"], "cwd": "/", "env": vigil.env})
            finally:
                os._exit(0)
        time.sleep(0.08 * n / repeats)  # sweep over the stages of a launch

        vigil.kill_daemon()
        os.waitpid(pid, 0)
        vigil.start()

        if name in [session["name"] for session in vigil.client.sessions(everything=True)]:
            session = vigil.wait_state(name, "running")
            agents = [p for p in vigil.processes() if is_of_session(p, name) and command_of(p) == b"sleep\x001000\x00"]
            assert agents == [session["pid"]], session
            assert vigil.deaths(name) == []
            assert session["restarts"]["count"] == 0
            vigil.client.rm(name)
        wait_for(lambda name=name: not [p for p in vigil.processes() if is_of_session(p, name)], 15, "it to be gone")  # type: ignore[misc]


def test_daemon_stop_leaves_sessions_running_and_kill_sessions_ends_them(vigil: Instance) -> None:
    tmux, headless = vigil.run("t", "sleep", "1000"), vigil.run("h", "sleep", "1000", runtime="headless")

    vigil.ok("daemon", "stop")

    assert alive(tmux["pid"])
    assert alive(headless["pid"])
    assert {s["name"]: s["pid"] for s in vigil.json("ls")} == {"t": tmux["pid"], "h": headless["pid"]}

    vigil.ok("daemon", "stop", "--kill-sessions")

    assert not alive(tmux["pid"])
    assert not alive(headless["pid"])
    assert not alive(tmux["server_pid"])
    wait_for(lambda: not vigil.processes(), 10, "everything to be gone", vigil.processes)


def test_kill_sessions_also_ends_and_names_what_no_session_knows_any_more(vigil: Instance) -> None:
    pane = vigil.run("pane", "sh", "-c", "trap '' HUP TERM; while :; do sleep 1; done")
    headless = vigil.run("headless", "sleep", "1000", runtime="headless")
    vigil.ok("daemon", "stop")
    kill(vigil.keeper_pid, signal.SIGKILL)
    shutil.rmtree(vigil.home.path / "launches")  # and what they could be found by
    for path in vigil.path.glob("vigil.db*"):
        path.unlink()

    done = vigil.run_cli("daemon", "stop", "--kill-sessions")

    assert done.returncode == 0
    assert "ended too, though no session knew of it" in done.stdout
    for name, pid in (("pane", pane["server_pid"]), ("pane", pane["pid"]), ("headless", headless["pid"])):
        assert re.search(rf"{name} \(pid [\d, ]*\b{pid}\b", done.stdout), done.stdout
        assert not alive(pid)
    assert not vigil.processes()
    told = [event for event in vigil.json("events") if event["kind"] == "orphan.reaping"]
    assert sorted(event["session"] for event in told) == ["headless", "pane"]


def test_kill_sessions_also_ends_what_would_have_come_back_meanwhile(vigil: Instance) -> None:
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    vigil.run("stubborn", "sh", "-c", stubborn)
    wait_for(lambda: "ready" in vigil.ok("logs", "stubborn"), 10, "the agent to be ready")
    flag = vigil.path / "second"
    script = f"if [ -e {flag} ]; then sleep 1000; else touch {flag}; exit 1; fi"
    vigil.run("waiting", "sh", "-c", script, restart="on-failure", backoff_base_s=2)
    vigil.wait_state("waiting", "crashed")

    vigil.ok("daemon", "stop", "--kill-sessions")

    wait_for(lambda: not vigil.processes(), 15, "everything to be gone", vigil.processes)


def test_the_server_of_an_agent_that_died_is_ended_by_the_next_daemon_if_this_one_could_not(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000")
    vigil.kill_daemon()
    kill(session["pid"], signal.SIGKILL)
    assert alive(session["server_pid"])

    vigil.start()

    wait_for(lambda: not alive(session["server_pid"]), 15, "its tmux server to be ended")
    vigil.wait_death("a")
