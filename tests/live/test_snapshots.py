"""A death explains itself: what was there before and after it lies beside its record, also when there was no daemon."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.live.instance import Instance, Json, alive, kill, wait_for
from tests.live.test_headless import ask_keeper

RUNTIMES = ("tmux", "headless")
SECRET = "hunter2-correct-horse"


def folder(vigil: Instance, session: Json) -> Path:
    return vigil.home.launch(session["launch"])


def wait_snapshot(vigil: Instance, session: Json) -> Json:
    """Wait for a launch's snapshot; it comes within 2 s, and a busy machine has some more."""
    path = folder(vigil, session) / "snapshot.json"
    wait_for(path.exists, 10, f"{path.name} of {session['name']}")
    body = json.loads(path.read_text())
    assert isinstance(body, dict)
    assert path.stat().st_size <= 64 << 10
    return body


def read_exit(vigil: Instance, session: Json) -> Json:
    path = folder(vigil, session) / "exit.json"
    wait_for(path.exists, 10, f"{path.name} of {session['name']}")
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("with_daemon", [True, False], ids=["daemon", "alone"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_agent_that_dies_leaves_a_snapshot_with_or_without_a_daemon(
    vigil: Instance, runtime: str, with_daemon: bool
) -> None:
    session = vigil.run("a", "sleep", "1000", runtime=runtime)
    if not with_daemon:
        vigil.kill_daemon()
    before = time.clock_gettime(time.CLOCK_BOOTTIME)

    kill(session["pid"], signal.SIGSEGV)

    body = wait_snapshot(vigil, session)
    assert body["launch"] == session["launch"]
    assert body["boot_s"] > before
    assert body["host"]["mem_total_kb"] > 0
    assert body["armed"]["mem_total_kb"] == body["host"]["mem_total_kb"]
    assert body["armed"]["boot_s"] < body["boot_s"]
    assert body["survivors"] == []
    assert any(one["launch"] is None for one in body["top"])
    born = json.loads((folder(vigil, session) / "born.json").read_text())
    assert born["armed"] == body["armed"]
    assert "oom" not in read_exit(vigil, session)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_agent_that_dies_at_birth_leaves_a_snapshot(vigil: Instance, runtime: str) -> None:
    session = vigil.run("a", "sh", "-c", "exit 3", runtime=runtime)

    assert wait_snapshot(vigil, session)["survivors"] == []


def test_the_death_of_a_server_leaves_a_snapshot_without_a_daemon(vigil: Instance) -> None:
    session = vigil.run("a", "sh", "-c", "trap '' HUP; while :; do sleep 0.1; done")
    server = int(vigil.tmux("a", "display-message", "-p", "#{pid}").stdout)
    vigil.kill_daemon()

    kill(server, signal.SIGKILL)

    survivors = wait_snapshot(vigil, session)["survivors"]
    assert session["pid"] in [one["pid"] for one in survivors]  # it outlived its pane
    assert server not in [one["pid"] for one in survivors]
    record = json.loads((folder(vigil, session) / "server-exit.json").read_text())
    assert record["oom"]["named"] is not True


@pytest.mark.parametrize("limit", ["0", "unlimited"])
def test_a_record_says_whether_a_core_was_dumped(vigil: Instance, limit: str) -> None:
    """Whether there is one is for the host to say: a limit of 0 forbids it, none may allow it."""
    script = f"ulimit -c {limit} 2>/dev/null; kill -SEGV $$"
    session = vigil.run("a", "sh", "-c", script, cwd=str(vigil.path), runtime="headless")

    record = read_exit(vigil, session)

    assert os.WTERMSIG(record["status"]) == signal.SIGSEGV
    assert record.get("core", False) is os.WCOREDUMP(record["status"])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_child_that_outlives_its_agent_is_listed(vigil: Instance, runtime: str) -> None:
    note = vigil.path / "child"
    session = vigil.run("a", "sh", "-c", f"setsid sleep 1000 & echo $! >{note}; wait", runtime=runtime)
    child = int(wait_for(lambda: note.read_text().strip() if note.exists() else "", 10, "the child's pid"))
    vigil.kill_daemon()

    kill(session["pid"], signal.SIGKILL)

    (survivor,) = wait_snapshot(vigil, session)["survivors"]
    assert (survivor["pid"], survivor["name"]) == (child, "sleep")
    assert alive(child)
    kill(child, signal.SIGKILL)


def test_twenty_deaths_at_once_are_twenty_snapshots(vigil: Instance) -> None:
    sessions = [vigil.run(f"s{n}", "sleep", "1000", runtime=RUNTIMES[n % 2]) for n in range(20)]

    for session in sessions:
        os.kill(session["pid"], signal.SIGKILL)

    bodies = [wait_snapshot(vigil, session) for session in sessions]
    assert [body["launch"] for body in bodies] == [session["launch"] for session in sessions]


def test_no_secret_of_an_agent_or_its_child_is_written_down(vigil: Instance) -> None:
    env = {**vigil.env, "TOKEN": SECRET}
    script = "setsid sh -c 'while :; do sleep 0.1; done' " + SECRET + " & exec sleep 1000"
    session = vigil.run("a", "sh", "-c", script, SECRET, env=env, runtime="headless")
    vigil.kill_daemon()

    kill(session["pid"], signal.SIGKILL)

    body = wait_snapshot(vigil, session)
    assert "sh" in [one["name"] for one in body["survivors"]]
    for name in ("snapshot.json", "born.json", "exit.json"):
        assert SECRET not in (folder(vigil, session) / name).read_text(), name
    for survivor in body["survivors"]:
        if alive(survivor["pid"]):
            os.kill(survivor["pid"], signal.SIGKILL)


def test_a_removed_session_is_not_written_to(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000", runtime="headless")
    other = vigil.run("b", "sleep", "1000", runtime="headless")
    kill(session["pid"], signal.SIGKILL)
    vigil.wait_death("a")
    ask_keeper(vigil, {"do": "forget", "launch": session["launch"], "removing": True})
    vigil.client.rm("a")

    kill(other["pid"], signal.SIGKILL)

    wait_snapshot(vigil, other)
    assert not folder(vigil, session).exists()


def test_a_keeper_that_was_upgraded_keeps_the_baseline_and_takes_snapshots(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000")
    armed = json.loads((folder(vigil, session) / "born.json").read_text())["armed"]
    keeper = vigil.keeper_pid
    ask_keeper(vigil, {"do": "upgrade"})
    wait_for(lambda: ask_keeper(vigil, {"do": "ping"})["watching"] == 3, 10, "the keeper to watch again")
    vigil.kill_daemon()

    kill(session["pid"], signal.SIGTERM)

    assert wait_snapshot(vigil, session)["armed"] == armed
    assert vigil.keeper_pid == keeper
