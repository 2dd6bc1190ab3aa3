"""Restarts: the documented delay is the real one, every path is charged alike, and giving up is said."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import pytest

from tests.live.instance import Instance, command_of, kill, wait_for


def at(moment: str) -> float:
    """Return a moment of the interface in seconds."""
    return datetime.fromisoformat(moment).timestamp()


def test_a_crash_loop_backs_off_as_documented_and_then_gives_up(shared: Instance) -> None:
    shared.run("loop", "sh", "-c", "exit 3", restart="on-failure", max_restarts=3, backoff_base_s=0.4)

    failed = shared.wait_state("loop", "failed")

    assert (failed["restarts"]["saturated"], failed["restarts"]["count"]) == (True, 4)
    assert failed["hold"] == {"reason": "saturated", "until": None}
    deaths = shared.deaths("loop")[::-1]
    assert [death["charged"] for death in deaths] == [True] * 4
    events = shared.client.events("loop")
    launched = [at(e["at"]) for e in events if e["kind"] == "session.state" and e["data"]["to"] == "starting"][1:]
    for n, (death, start) in enumerate(zip(deaths, launched, strict=False)):
        wanted = 0.4 * 2**n
        assert wanted * 0.9 <= start - at(death["at"]) < wanted * 1.1 + 0.5, (n, wanted)


def test_the_crashed_marker_is_shown_for_the_whole_backoff(shared: Instance) -> None:
    shared.run("marked", "sh", "-c", "exit 3", restart="always", backoff_base_s=30)

    crashed = shared.wait_state("marked", "crashed")

    assert crashed["hold"]["reason"] == "backoff"
    assert 26 < at(crashed["restarts"]["next_attempt_at"]) - time.time() < 34
    assert crashed["last_death"]["cause"] == "crash"
    assert "backoff" in shared.ok("ls")
    shared.client.rm("marked")


def test_reset_ends_a_backoff_and_a_saturation(shared: Instance) -> None:
    shared.run("again", "sh", "-c", "exit 3", restart="on-failure", max_restarts=1, backoff_base_s=30)
    shared.wait_state("again", "crashed")

    shared.ok("reset", "again")

    wait_for(lambda: len(shared.deaths("again")) == 2, 10, "the next launch")
    assert shared.wait_state("again", "crashed")["restarts"]["count"] == 1
    shared.client.rm("again")


@pytest.mark.parametrize(
    ("when", "script", "state"),
    [
        ("never", "exit 0", "succeeded"),
        ("never", "exit 3", "failed"),
        ("on-failure", "exit 0", "succeeded"),
        ("on-failure", "exit 3", "crashed"),
        ("always", "exit 0", "crashed"),  # within its first seconds: an early exit
        ("always", "exit 3", "crashed"),
    ],
)
@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_policies_mean_what_they_say(shared: Instance, when: str, script: str, state: str, runtime: str) -> None:
    shared.run("policy", "sh", "-c", script, restart=when, backoff_base_s=60, runtime=runtime)

    restarts = shared.wait_state("policy", state)["restarts"]
    assert (restarts["policy"], restarts["count"]) == (when, int(state == "crashed"))
    shared.client.rm("policy")


def test_a_server_death_is_charged_like_a_crash(shared: Instance) -> None:
    session = shared.run("server", "sleep", "1000", restart="on-failure", backoff_base_s=0.2)

    os.kill(session["server_pid"], signal.SIGKILL)

    wait_for(lambda: shared.get("server")["launch"].endswith("-2") and shared.get("server")["pid"], 10, "the replacement")
    after = shared.get("server")
    assert after["restarts"]["count"] == 1
    assert after["last_death"]["cause"] == "server-died"
    assert after["server_pid"] != session["server_pid"]
    shared.client.rm("server")


def test_what_a_dead_agent_left_is_ended_before_its_replacement(shared: Instance) -> None:
    script = "setsid sleep 999 & echo $!; sleep 0.3; exit 3"
    shared.run("leaky", "sh", "-c", script, restart="on-failure", backoff_base_s=0.2, runtime="headless")

    wait_for(lambda: shared.get("leaky")["launch"].endswith("-3"), 20, "two replacements")

    left = [pid for pid in shared.processes() if command_of(pid) == b"sleep\x00999\x00"]
    assert len(left) <= 1, left  # only the newest launch may have one
    shared.client.rm("leaky")
    assert not [pid for pid in shared.processes() if command_of(pid) == b"sleep\x00999\x00"]


def test_stop_during_a_backoff_ends_the_wait(shared: Instance) -> None:
    shared.run("halted", "sh", "-c", "exit 3", restart="always", backoff_base_s=0.5)
    shared.wait_state("halted", "crashed")

    shared.ok("stop", "halted")

    deaths = len(shared.deaths("halted"))
    time.sleep(1.2)  # longer than the backoff it had
    assert shared.get("halted")["state"] == "stopped"
    assert len(shared.deaths("halted")) == deaths


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_a_daemon_killed_again_and_again_during_a_backoff_makes_it_no_longer(vigil: Instance, runtime: str) -> None:
    vigil.run("waits", "sh", "-c", "exit 3", restart="always", backoff_base_s=6, runtime=runtime)
    before = vigil.wait_state("waits", "crashed")
    until = at(before["hold"]["until"])

    for _ in range(5):
        vigil.kill_daemon()
        vigil.start()
        after = vigil.get("waits")
        assert after["launch"] != before["launch"] or after["hold"] == before["hold"] or time.time() > until

    launched = wait_for(lambda: starts_of(vigil, "waits")[1:], 30, "it to be launched again")[0]
    started = [at(event["at"]) for event in vigil.client.events() if event["kind"] == "daemon.started"]
    due = max(until, max(moment for moment in started if moment - STARTING_S <= launched))
    assert -STARTING_S <= launched - due < 1.0 + LOAD_S, (until, started, launched)
    assert [death["charged"] for death in vigil.deaths("waits")][-1:] == [True]


def test_a_launch_that_a_killed_daemon_never_ordered_is_made_by_the_next_without_a_pause(vigil: Instance) -> None:
    vigil.run("cut", "sh", "-c", "exit 3", restart="always", backoff_base_s=0.5, runtime="headless")
    vigil.wait_state("cut", "crashed")
    with stopped_keeper(vigil):  # the order lies there, and nobody takes it
        wait_for(lambda: vigil.get("cut")["state"] == "starting", 20, "its launch to be ordered")
        ordered = vigil.get("cut")["launch"]
        wait_for(lambda: (vigil.home.launch(ordered) / "launch.json").exists(), 20, "the order")
        vigil.kill_daemon()
        keeper = vigil.keeper_pid
        kill(keeper, signal.SIGKILL)

    began = time.time()
    vigil.start()

    launched = wait_for(lambda: [one for one in starts_of(vigil, "cut") if one > began], 20, "it to be launched anew")
    assert launched[0] - began < 2.0 + LOAD_S


STARTING_S = 0.5  # a daemon acts before it says that it started
LOAD_S = 0.0 if os.environ.get("VIGIL_SOAK") else 2.0  # beside a whole suite everything is late


@contextmanager
def stopped_keeper(vigil: Instance) -> Iterator[None]:
    keeper = vigil.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGCONT)


def starts_of(vigil: Instance, name: str) -> list[float]:
    """Return when each launch of a session was decided."""
    events = vigil.client.events(name)
    return [at(event["at"]) for event in events if event["kind"] == "session.state" and event["data"]["to"] == "starting"]
