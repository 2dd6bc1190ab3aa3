"""However an agent ends, its death record says how, exactly once."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.live.instance import DEADLINE_S, Instance, wait_for
from vigil.keeper.records import read_exits
from vigil.kernel.process import read_stat

RUNTIMES = ("tmux", "headless")
EXITS = {  # what the agent does: exit code, signal, cause
    "exit 0": (0, None, "finished"),
    "exit 3": (3, None, "crash"),
    "exit 137": (137, None, "crash"),
    "exit 143": (143, None, "killed-by-unknown"),
    "kill -TERM $$": (None, 15, "killed-by-unknown"),
    "kill -KILL $$": (None, 9, "killed-by-unknown"),
    "kill -SEGV $$": (None, 11, "crash"),
}
SIGNALS = {"TERM": (15, "killed-by-unknown"), "KILL": (9, "killed-by-unknown"), "SEGV": (11, "crash")}


@pytest.mark.soak
@pytest.mark.parametrize("before", ["", "sleep 0.2; "], ids=["at-birth", "later"])
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("script", EXITS)
def test_an_agent_that_ends_leaves_its_true_status(
    shared: Instance, repeats: int, runtime: str, script: str, before: str
) -> None:
    code, number, cause = EXITS[script]
    names = [f"ends-{runtime}-{list(EXITS).index(script)}-{n}" for n in range(repeats)]
    shared.start()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: shared.run(name, "sh", "-c", before + script, runtime=runtime), names))

    for name in names:
        death = shared.wait_death(name)
        assert (death["exit_code"], death["signal"], death["cause"]) == (code, number, cause), death
        shared.client.rm(name)


@pytest.mark.soak
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", SIGNALS)
def test_an_agent_that_is_killed_from_outside_leaves_the_signal(
    shared: Instance, repeats: int, runtime: str, name: str
) -> None:
    number, cause = SIGNALS[name]
    for n in range(repeats):
        session = shared.run(f"killed-{runtime}-{name.lower()}-{n}", "sleep", "1000", runtime=runtime)

        os.kill(session["pid"], number)

        death = shared.wait_death(session["name"])
        assert (death["exit_code"], death["signal"], death["cause"]) == (None, number, cause), death
        after = shared.wait_state(session["name"], "failed")
        assert after["axes"]["process"]["value"] == "dead"
        assert after["axes"]["process"]["conclusive"]
        assert after["pid"] is None
        shared.client.rm(session["name"])


def test_a_zombie_is_never_alive(shared: Instance) -> None:
    """The headless agent's parent is the keeper: stopped, it leaves the agent a zombie."""
    session = shared.run("zombie", "sleep", "1000", runtime="headless")
    os.kill(shared.keeper_pid, signal.SIGSTOP)
    try:
        os.kill(session["pid"], signal.SIGKILL)

        death = shared.wait_death("zombie")
    finally:
        os.kill(shared.keeper_pid, signal.SIGCONT)

    assert (death["signal"], death["observed_by"]) == (9, "daemon")
    assert shared.get("zombie")["state"] == "failed"


def test_agents_that_end_together_are_all_recorded_and_none_is_left_a_zombie(shared: Instance) -> None:
    """The keeper records and reaps each of them, while it launches another."""
    sessions = [shared.run(f"together-{n}", "sleep", "1000", runtime="headless") for n in range(5)]

    for session in sessions:
        os.kill(session["pid"], signal.SIGKILL)
    beside = shared.run("beside-them", "sleep", "1000", runtime="tmux")

    assert beside["state"] == "running"
    for session in sessions:
        shared.wait_death(session["name"])
        folder = str(shared.client.home.launch(session["launch"]))
        record = wait_for(partial(lambda where: read_exits(where).get("agent"), folder), DEADLINE_S, "its record")
        assert (record["status"], record["source"]) == (signal.SIGKILL, "wait")
        wait_for(partial(lambda pid: read_stat(pid) is None, session["pid"]), DEADLINE_S, "the agent reaped")
    for session in (*sessions, beside):
        shared.client.rm(session["name"])
