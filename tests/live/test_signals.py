"""Signals that do not end an agent reach it and are never taken for its death."""

from __future__ import annotations

import os
import signal

from tests.live.instance import Instance, alive, wait_for

COUNTS_INT = "trap 'echo got-int' INT; echo ready; while :; do sleep 0.05; done"


def test_ctrl_c_typed_into_the_pane_reaches_the_agent(shared: Instance) -> None:
    session = shared.run("ctrl-c", "sh", "-c", COUNTS_INT)
    wait_for(lambda: "ready" in shared.ok("logs", "ctrl-c"), 10, "the agent to be ready")

    shared.tmux("ctrl-c", "send-keys", "-t", "%0", "C-c")

    wait_for(lambda: "got-int" in shared.ok("logs", "ctrl-c"), 10, "the agent to say that it got it")
    assert alive(session["pid"])
    assert shared.get("ctrl-c")["state"] == "running"
    assert shared.deaths("ctrl-c") == []


def test_ctrl_c_ends_an_agent_that_does_not_handle_it(shared: Instance) -> None:
    shared.run("ctrl-c-ends", "sleep", "1000")

    shared.tmux("ctrl-c-ends", "send-keys", "-t", "%0", "C-c")

    death = shared.wait_death("ctrl-c-ends")
    assert (death["signal"], death["cause"]) == (2, "killed-by-unknown")


def test_ctrl_z_typed_into_the_pane_does_not_end_or_lose_the_agent(shared: Instance) -> None:
    session = shared.run("ctrl-z", "sh", "-c", "echo ready; n=0; while :; do n=$((n+1)); echo line-$n; sleep 0.05; done")
    wait_for(lambda: "line-3" in shared.ok("logs", "ctrl-z"), 10, "the agent to work")

    shared.tmux("ctrl-z", "send-keys", "-t", "%0", "C-z")

    seen = shared.ok("logs", "ctrl-z").split()[-1]
    wait_for(lambda: shared.ok("logs", "ctrl-z").split()[-1] != seen, 10, "the agent to go on: tmux continues its pane")
    assert shared.get("ctrl-z")["pid"] == session["pid"]
    assert shared.deaths("ctrl-z") == []


def test_a_stopped_agent_is_shown_as_stopped_and_goes_on_after_cont(shared: Instance) -> None:
    for runtime in ("tmux", "headless"):
        name = f"stopped-{runtime}"
        session = shared.run(name, "sleep", "1000", runtime=runtime)

        os.kill(session["pid"], signal.SIGSTOP)

        stopped = wait_for(lambda name=name: _reads(shared, name, "stopped"), 10, "stopped")  # type: ignore[misc]
        assert (stopped["state"], stopped["health"]) == ("running", "stalled")
        os.kill(session["pid"], signal.SIGCONT)
        assert wait_for(lambda name=name: _reads(shared, name, "alive"), 10, "alive")["health"] == "ok"  # type: ignore[misc]
        assert shared.deaths(name) == []


def test_a_stopped_agent_can_be_stopped_for_good(shared: Instance) -> None:
    session = shared.run("frozen", "sleep", "1000")
    os.kill(session["pid"], signal.SIGSTOP)

    shared.client.ask("stop", "frozen")

    assert not alive(session["pid"])
    assert shared.wait_death("frozen")["cause"] == "operator"


def _reads(vigil: Instance, name: str, value: str) -> dict[str, object] | None:
    session = vigil.get(name)
    return session if session["axes"]["process"]["value"] == value else None
