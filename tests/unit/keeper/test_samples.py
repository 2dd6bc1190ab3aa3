"""What was known before a death: taken every 10 s while anything is watched, bounded, and never of the dead."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vigil.keeper.kills import Kills
from vigil.keeper.samples import AGENT_SAMPLES, AGENTS_A_TIME, EVERY_S, HOST_SAMPLES, TREE, Samples
from vigil.kernel import durable
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.host import HostFacts
from vigil.kernel.kernel_log import KernelLog
from vigil.kernel.process import read_start_ticks

Start = Callable[..., subprocess.Popen[bytes]]
FAMILY = (
    "import os, sys\n"
    "for _ in range(int(sys.argv[1])):\n"
    "    if os.fork() == 0: os.execvp('cat', ['cat'])\n"
    "print('born', flush=True); sys.stdin.read()"
)


class Watching:
    """Samples with a clock of the test's own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.spent = self.total = 0.0
        host, cgroups, log = HostFacts(clock=lambda: self.now), Cgroups(), KernelLog("/nonexistent")
        kills = Kills(log, cgroups, clock=lambda: self.now)
        self.samples = Samples(host, cgroups, log, kills, lambda: self.now, self._spend)

    def _spend(self) -> float:
        """Every look at the processor's time costs as much as the test says."""
        self.total += self.spent
        return self.total

    def follow(self, launch: str, pid: int, folder: Path | str = "/nonexistent", role: str = "agent") -> None:
        self.samples.follow(launch, str(folder), role, pid, read_start_ticks(pid) or 0)

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        self.samples.catch_up()


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that end with the test: a parent and as many children, all reading the same pipe."""
    started = []

    def start_one(children: int = 0) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", FAMILY, str(children)]
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"born\n"
        return child

    yield start_one
    for child in started:
        child.communicate(timeout=10)  # closes their input, and waits until all of them let go of the output


def test_nothing_is_waited_for_while_nothing_is_watched(watching: Watching) -> None:
    assert watching.samples.wait_s() is None
    watching.pass_s(100)
    assert not watching.samples.ring


def test_a_sample_is_taken_every_ten_seconds_until_nothing_is_left(watching: Watching) -> None:
    watching.follow("a-1", os.getpid())
    assert watching.samples.wait_s() == EVERY_S

    watching.pass_s(EVERY_S - 1)
    assert (len(watching.samples.ring), watching.samples.wait_s()) == (0, 1.0)
    watching.pass_s(1)
    assert (len(watching.samples.ring), watching.samples.wait_s()) == (1, EVERY_S)

    watching.samples.ended("a-1", "agent")
    assert watching.samples.wait_s() is None
    assert watching.samples.track("a-1") is None


def test_a_launch_is_sampled_until_its_last_process_ended(watching: Watching) -> None:
    for role in ("agent", "root", "server"):
        watching.follow("a-1", os.getpid(), role=role)

    watching.samples.ended("a-1", "agent")
    watching.samples.ended("a-1", "server")
    assert watching.samples.track("a-1") is not None
    watching.samples.ended("a-1", "root")
    assert watching.samples.track("a-1") is None


def test_what_is_kept_is_bounded(watching: Watching) -> None:
    watching.follow("a-1", os.getpid())
    for _ in range(HOST_SAMPLES + 5):
        watching.pass_s(EVERY_S)

    track = watching.samples.track("a-1")
    assert track is not None
    assert (len(watching.samples.ring), len(track.samples)) == (HOST_SAMPLES, AGENT_SAMPLES)


def test_an_agent_is_sampled_with_its_tree(watching: Watching, start: Start) -> None:
    parent = start(children=2)
    watching.follow("a-1", parent.pid)
    watching.pass_s(EVERY_S)

    track = watching.samples.track("a-1")
    assert track is not None
    assert track.tree is not None
    first, *rest = track.tree.processes
    assert (first.pid, first.ppid) == (parent.pid, os.getpid())
    assert [process.ppid for process in rest] == [parent.pid] * 2
    assert track.samples[-1].rss_kb == first.rss_kb > 1000
    written = track.tree.as_json()
    assert set(written) == {"at", "boot_s", "processes"}
    assert set(written["processes"][0]) == {"pid", "ppid", "name", "state", "rss_kb"}


def test_a_large_tree_is_cut(watching: Watching, start: Start) -> None:
    watching.follow("a-1", start(children=TREE + 3).pid)
    watching.pass_s(EVERY_S)

    track = watching.samples.track("a-1")
    assert track is not None
    assert track.tree is not None
    assert len(track.tree.processes) == TREE


def test_children_of_other_threads_are_seen_too(watching: Watching) -> None:
    """The test itself has threads or not: a child of any of them is below it."""
    code = (
        "import subprocess, sys, threading\n"
        "def run():\n    c = subprocess.Popen(['cat'], stdin=0); print(c.pid, flush=True); c.wait()\n"
        "threading.Thread(target=run).start()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        watching.follow("a-1", parent.pid)
        watching.pass_s(EVERY_S)

        track = watching.samples.track("a-1")
        assert track is not None
        assert track.tree is not None
        assert [process.pid for process in track.tree.processes] == [parent.pid, child]
    finally:
        parent.communicate(timeout=10)


def test_of_many_launches_each_has_its_turn(watching: Watching) -> None:
    names = [f"a-{n}" for n in range(AGENTS_A_TIME + 10)]
    for name in names:
        watching.follow(name, os.getpid())

    counts = []
    for _ in range(2):
        watching.pass_s(EVERY_S)
        tracks = [watching.samples.track(name) for name in names]
        counts.append(sum(len(track.samples) for track in tracks if track is not None))

    assert counts == [AGENTS_A_TIME, 2 * AGENTS_A_TIME]
    assert all(track is not None and track.samples for track in tracks)


def test_launches_that_cost_much_are_sampled_one_at_a_time_and_still_each_in_turn(watching: Watching) -> None:
    names = ["a-1", "b-1", "c-1"]
    for name in names:
        watching.follow(name, os.getpid())
    watching.spent = 1.0

    for _ in range(3):
        watching.pass_s(EVERY_S)

    tracks = [watching.samples.track(name) for name in names]
    assert [len(track.samples) for track in tracks if track is not None] == [1, 1, 1]


def test_a_process_that_has_ended_is_not_sampled(watching: Watching, start: Start) -> None:
    child = start()
    watching.follow("a-1", child.pid)
    watching.pass_s(EVERY_S)
    child.communicate(timeout=10)
    watching.pass_s(EVERY_S)

    track = watching.samples.track("a-1")
    assert track is not None
    assert len(track.samples) == 1


def test_a_launch_has_a_baseline_from_its_birth(watching: Watching, tmp_path: Path) -> None:
    armed = watching.samples.arm("a-1", str(tmp_path), os.getpid())
    watching.follow("a-1", os.getpid(), tmp_path)

    track = watching.samples.track("a-1")
    assert track is not None
    assert track.armed == armed
    assert armed["mem_total_kb"] == HostFacts().read()["mem_total_kb"]
    assert {"at", "boot_s", "cgroup", "oom_kills"} <= set(armed)


def test_a_new_keeper_has_the_baseline_of_the_birth(watching: Watching, tmp_path: Path) -> None:
    durable.record_json(str(tmp_path / "born.json"), {"agent": [1, 2], "armed": {"at": 5.0}})
    watching.follow("a-1", os.getpid(), tmp_path)

    track = watching.samples.track("a-1")
    assert track is not None
    assert track.armed == {"at": 5.0}


@pytest.mark.parametrize("armed", [{}, {"armed": None}, {"armed": 7}])
def test_a_birth_without_a_baseline_has_one_from_now_on(watching: Watching, tmp_path: Path, armed: dict[str, object]) -> None:
    durable.record_json(str(tmp_path / "born.json"), {"agent": [1, 2], **armed})
    watching.follow("a-1", os.getpid(), tmp_path)

    track = watching.samples.track("a-1")
    assert track is not None
    assert track.armed is not None
    assert track.armed["boot_s"] > 0


def test_what_is_held_for_a_snapshot_goes_on_when_another_process_of_the_launch_is_followed(watching: Watching) -> None:
    """An agent that dies at birth ends before its server is known."""
    watching.follow("a-1", os.getpid())
    held = watching.samples.track("a-1")
    watching.samples.ended("a-1", "agent")

    watching.follow("a-1", os.getppid(), role="server")

    assert watching.samples.track("a-1") is held
    assert held is not None
    assert set(held.processes) == {"agent", "server"}
