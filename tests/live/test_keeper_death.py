"""The keeper may die or hang: sessions live on, deaths are still seen, and there is never a second keeper."""

from __future__ import annotations

import os
import signal

from tests.live.instance import Instance, alive, command_of, is_of_session, kill, wait_for
from tests.live.test_headless import ask_keeper
from vigil.keeper.records import read_shim_exit


def test_after_a_sigkill_of_the_keeper_sessions_live_on_under_a_new_one(vigil: Instance) -> None:
    tmux, headless = vigil.run("t", "sleep", "1000"), vigil.run("h", "sleep", "1000", runtime="headless")
    first = vigil.keeper_pid

    vigil.kill_keeper()

    wait_for(lambda: vigil.keeper_pid != first and alive(vigil.keeper_pid), 15, "a new keeper")
    vigil.wait_event("keeper.started")
    assert (vigil.get("t")["pid"], vigil.get("h")["pid"]) == (tmux["pid"], headless["pid"])
    assert vigil.deaths("t") == vigil.deaths("h") == []


def test_a_new_keeper_records_the_death_of_what_it_did_not_spawn(vigil: Instance) -> None:
    session = vigil.run("t", "sleep", "1000")
    vigil.kill_keeper()
    vigil.wait_event("keeper.started")
    vigil.kill_daemon()

    kill(session["pid"], signal.SIGSEGV)
    wait_for(lambda: (vigil.home.launch(session["launch"]) / "exit.json").exists(), 10, "the new keeper's record")
    vigil.start()

    death = vigil.wait_death("t")
    assert (death["signal"], death["observed_by"]) == (11, "keeper")


def test_sessions_live_on_when_daemon_and_keeper_are_both_killed(vigil: Instance) -> None:
    session = vigil.run("t", "sleep", "1000", restart="always")
    vigil.kill_daemon()
    vigil.kill_keeper()

    after = vigil.json("get", "t")

    assert (after["pid"], after["launch"], after["state"]) == (session["pid"], session["launch"], "running")
    assert after["restarts"]["count"] == 0


def test_a_death_that_only_the_shim_saw_says_so(vigil: Instance) -> None:
    session = vigil.run("t", "sh", "-c", f"while [ ! -e {vigil.path}/go ]; do sleep 0.02; done; exit 7")
    vigil.kill_daemon()
    vigil.kill_keeper()

    (vigil.path / "go").touch()
    wait_for(lambda: read_shim_exit(str(vigil.home.launch(session["launch"]))), 10, "the shim's record")
    wait_for(lambda: not alive(session["pid"]), 10, "the agent to end")
    vigil.start()

    death = vigil.wait_death("t")
    assert (death["exit_code"], death["observed_by"], death["cause"]) == (7, "shim", "crash")


def test_a_status_that_the_shim_cannot_tell_is_said_to_be_ambiguous(vigil: Instance) -> None:
    session = vigil.run("t", "sleep", "1000")
    vigil.kill_daemon()
    vigil.kill_keeper()

    kill(session["pid"], signal.SIGKILL)
    wait_for(lambda: read_shim_exit(str(vigil.home.launch(session["launch"]))), 10, "the shim's record")
    vigil.start()

    death = vigil.wait_death("t")
    assert (death["exit_code"], death["signal"], death["observed_by"]) == (137, None, "shim")
    assert "SIGKILL (9) or by exit 137" in death["evidence"][0]["text"]


def test_a_death_that_nobody_saw_says_unobserved(vigil: Instance) -> None:
    session = vigil.run("h", "sleep", "1000", runtime="headless")
    vigil.kill_daemon()
    vigil.kill_keeper()

    kill(session["pid"], signal.SIGKILL)
    vigil.start()

    death = vigil.wait_death("h")
    assert (death["cause"], death["exit_code"], death["signal"]) == ("unobserved", None, None)
    assert death["observed_by"] == "start-up"


def test_a_stopped_keeper_is_an_event_no_second_one_and_deaths_are_still_seen(vigil: Instance) -> None:
    tmux, headless = vigil.run("t", "sleep", "1000"), vigil.run("h", "sleep", "1000", runtime="headless")
    keeper = vigil.keeper_pid

    os.kill(keeper, signal.SIGSTOP)

    assert vigil.wait_event("keeper.wedged", within_s=15)["data"]["pid"] == keeper
    assert vigil.keeper_pid == keeper
    os.kill(tmux["pid"], signal.SIGTERM)
    os.kill(headless["pid"], signal.SIGKILL)
    assert vigil.wait_death("t")["signal"] == 15
    assert vigil.wait_death("h")["signal"] == 9
    assert vigil.client.status()["keeper_wedged"]

    os.kill(keeper, signal.SIGCONT)

    vigil.wait_event("keeper.answers", within_s=15)
    assert (vigil.keeper_pid, len(vigil.deaths("t")), len(vigil.deaths("h"))) == (keeper, 1, 1)


def test_a_daemon_that_starts_beside_a_stopped_keeper_watches_without_it(vigil: Instance) -> None:
    session = vigil.run("t", "sleep", "1000")
    keeper = vigil.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    vigil.kill_daemon()

    assert vigil.json("get", "t")["pid"] == session["pid"]

    assert vigil.client.status()["keeper_wedged"]
    os.kill(session["pid"], signal.SIGSEGV)
    assert vigil.wait_death("t")["signal"] == 11
    os.kill(keeper, signal.SIGCONT)
    vigil.wait_event("keeper.answers", within_s=15)
    assert vigil.keeper_pid == keeper


def test_a_launch_whose_daemon_died_while_the_keeper_hung_is_born_once(vigil: Instance) -> None:
    """No order is given to a keeper that hangs; the next daemon waits for it too, and then there is one agent."""
    session = vigil.run("t", "sleep", "1000", restart="always", backoff_base_s=0.2)
    keeper = vigil.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    os.kill(session["pid"], signal.SIGKILL)
    second = vigil.home.launch(session["launch"].removesuffix("-1") + "-2")
    wait_for(lambda: (vigil.get("t")["hold"] or {}).get("reason") == "keeper", 20, "it to wait for the keeper")

    vigil.kill_daemon()
    vigil.start()
    wait_for(lambda: (vigil.get("t")["hold"] or {}).get("reason") == "keeper", 20, "it to wait for the keeper again")
    assert not (second / "launch.json").exists()
    os.kill(keeper, signal.SIGCONT)

    vigil.wait_state("t", "running", within_s=40)
    agents = [pid for pid in vigil.processes() if is_of_session(pid, "t") and command_of(pid) == b"sleep\x001000\x00"]
    assert agents == [vigil.get("t")["pid"]]
    assert [death["cause"] for death in vigil.deaths("t")] == ["killed-by-unknown"]


def test_an_older_keeper_is_replaced_in_place_and_keeps_its_children(vigil: Instance) -> None:
    session = vigil.run("h", "sleep", "1000", runtime="headless")
    keeper = vigil.keeper_pid
    vigil.ok("daemon", "stop")

    assert ask_keeper(vigil, {"do": "upgrade"})["ok"]

    vigil.start()
    assert vigil.client.status()["keeper_pid"] == keeper
    kill(session["pid"], signal.SIGSEGV)
    death = vigil.wait_death("h")
    assert death["signal"] == 11


def test_the_keeper_ends_by_itself_when_nothing_is_left_to_watch(vigil: Instance) -> None:
    vigil.run("t", "sleep", "1000")
    vigil.client.rm("t")
    keeper = vigil.keeper_pid

    vigil.ok("daemon", "stop")

    wait_for(lambda: not alive(keeper), 20, "the keeper to end")
