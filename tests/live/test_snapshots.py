"""A death explains itself: what was there before and after it lies beside its record, also when there was no daemon."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import Instance, Json, alive, kill, wait_for
from tests.live.test_headless import ask_keeper
from vigil.keeper.cgroups import EVENTS, Cgroups

RUNTIMES = ("tmux", "headless")
SECRET = "hunter2-correct-horse"
LIMIT_BYTES = 60 << 20
HOG = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\nx = b'x' * (200 << 20)"


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


class Cage:
    """A memory cgroup of this test's own."""

    def __init__(self, path: Path, version: int) -> None:
        self.path = path
        self._limit = path / ("memory.limit_in_bytes" if version == 1 else "memory.max")
        self._outside = Path(Cgroups().path_of(os.getpid()) or path.parent)

    def admit(self, pid: int) -> None:
        (self.path / "cgroup.procs").write_text(f"{pid}\n")

    def release(self, pid: int) -> None:
        (self._outside / "cgroup.procs").write_text(f"{pid}\n")

    def limit(self) -> None:
        self._limit.write_text(f"{LIMIT_BYTES}\n")
        swap = self.path / "memory.swap.max"
        if swap.exists():
            swap.write_text("0\n")

    def close(self) -> None:
        for pid in (self.path / "cgroup.procs").read_text().split():
            self.release(int(pid))
        wait_for(self._is_removed, 10, "the cgroup to be removed")

    def _is_removed(self) -> bool:
        try:
            self.path.rmdir()
        except OSError:
            return False  # the last process is still on its way out
        return True


@pytest.fixture
def cage() -> Iterator[Cage]:
    """A cgroup in which memory can be made scarce; skipped where none can be made."""
    version = Cgroups().version
    top = {1: Path("/sys/fs/cgroup/memory"), 2: Path("/sys/fs/cgroup")}.get(version or 0, Path("/nonexistent"))
    path = top / f"vigil-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made here: {error}")
    made = Cage(path, version or 0)
    try:
        if not (path / EVENTS[version or 0]).exists():
            pytest.skip(f"{top} does not account for memory")
        yield made
    finally:
        made.close()


def test_a_kill_for_want_of_memory_is_named_and_one_by_hand_just_after_is_not(vigil: Instance, cage: Cage) -> None:
    vigil.run("first", "sleep", "1000", runtime="headless")  # there is a keeper now
    cage.admit(vigil.keeper_pid)  # what it starts is born in the cage
    try:
        hog = vigil.run("hog", "python3", "-c", HOG, str(vigil.path / "go"), runtime="headless")
        other = vigil.run("other", "sleep", "1000", runtime="headless")
    finally:
        cage.release(vigil.keeper_pid)
    cage.limit()

    (vigil.path / "go").touch()
    oom = read_exit(vigil, hog)["oom"]
    kill(other["pid"], signal.SIGKILL)
    by_hand = read_exit(vigil, other)["oom"]

    assert (oom["cgroup"], oom["cgroup_kills"], oom["host_kills"]) == (str(cage.path), 1, 1)
    assert (by_hand["cgroup"], by_hand["cgroup_kills"], by_hand["host_kills"]) == (str(cage.path), 0, 0)
    body = wait_snapshot(vigil, hog)
    assert body["cgroup"]["max_bytes"] == LIMIT_BYTES
    assert body["armed"]["cgroup"]["oom_kills"] == 0
    if body["kernel"]["readable"]:
        assert (oom["named"], by_hand["named"]) == (True, False)
        assert f"Killed process {hog['pid']} (python3)" in oom["line"]
        assert oom["line"] in body["kernel"]["lines"]
    else:
        assert (oom["named"], by_hand["named"]) == (None, None)
