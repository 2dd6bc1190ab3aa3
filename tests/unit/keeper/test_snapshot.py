"""A snapshot shows what a launch left behind, once, within bounds, and never a secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.keeper.test_samples import Watching
from vigil.keeper.protocol import SnapshotWord
from vigil.keeper.samples import Track
from vigil.keeper.snapshot import AFTER_S, BYTES, READING_EVERY_S, Pending, SnapshotReading, Snapshots, fit, survivors_of
from vigil.kernel import process
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.host import HostFacts
from vigil.kernel.kernel_log import KernelLog
from vigil.kernel.processes import USUAL_BYTES, ScannedProcess, scan_processes

KEYS = {
    "launch",
    "of",
    "at",
    "boot_s",
    "host",
    "armed",
    "samples",
    "agent_samples",
    "tree",
    "survivors",
    "top",
    "kernel",
    "cgroup",
    "unknown",
}


class Desk:
    """Snapshots with a clock of the test's own; it counts the readings of /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.watching = Watching()
        self.told: list[SnapshotWord] = []
        self.readings = 0
        log = KernelLog("/nonexistent")
        self.snapshots = Snapshots(
            self.watching.samples, HostFacts(), Cgroups(), log, self.told.append, lambda: self.watching.now, self._scan
        )

    def _scan(self) -> Iterator[ScannedProcess | None]:
        self.readings += 1
        return scan_processes()

    def end(self, launch: str, **processes: tuple[int, int]) -> Path:
        """Tell of the end of something of a launch; return where its snapshot will be."""
        folder = self.folder / launch
        folder.mkdir(exist_ok=True)
        self.snapshots.ask(Track(launch, str(folder), processes=processes), time.clock_gettime(time.CLOCK_BOOTTIME))
        return folder / "snapshot.json"

    def pass_s(self, seconds: float) -> None:
        """Let time pass, and do all that is due."""
        self.watching.now += seconds
        while self.snapshots.wait_s() == 0.0:
            self.snapshots.catch_up()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_launch_is_found_also_at_the_end_of_a_large_environment() -> None:
    much = {f"FILL_{n}": "x" * 1000 for n in range(USUAL_BYTES // 500)}
    with subprocess.Popen(["/bin/sleep", "1000"], env={**much, "VIGIL_LAUNCH": "s1-1"}) as agent:
        try:
            seen = [seen for seen in scan_processes() if seen is not None and seen.pid == agent.pid]
        finally:
            agent.kill()

    assert [one.launch for one in seen] == ["s1-1"]


def stat(pid: int, sid: int, start_ticks: int) -> process.Stat:
    return process.Stat(pid, "cat", "S", 1, pid, sid, 0, -1, 0, 0, 1, start_ticks, 100)


def make_reading(*seen: ScannedProcess) -> SnapshotReading:
    """A reading that found these processes."""
    reading = SnapshotReading(0.0, None, list(seen))
    for one in seen:
        reading.by_pid[one.pid] = one
        if one.launch is not None:
            reading.by_launch[one.launch].append(one)
        elif one.mine:
            reading.by_sid[one.stat.sid].append(one)
    return reading


def make_pending(**processes: tuple[int, int]) -> Pending:
    return Pending(Track("a-1", "/nonexistent", processes=processes), 0.0, ended_ticks=1000)


def pids(pending: Pending, *seen: ScannedProcess) -> list[int]:
    return [one.pid for one in survivors_of(pending, make_reading(*seen))]


def test_a_snapshot_is_taken_half_a_second_after_the_end_and_told(desk: Desk) -> None:
    path = desk.end("a-1")

    desk.pass_s(AFTER_S - 0.1)
    assert not path.exists()
    desk.pass_s(0.1)

    body = json.loads(path.read_text())
    assert set(body) == KEYS
    assert body["launch"] == "a-1"
    assert desk.told == [SnapshotWord("a-1")]
    assert {"kernel", "armed", "cgroup"} <= set(body["unknown"])
    assert 0 < len(body["top"]) <= 25
    assert body["top"] == sorted(body["top"], key=lambda one: -one["rss_kb"])
    assert [found.name for found in path.parent.iterdir()] == ["snapshot.json"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_launch_has_one_snapshot_whatever_of_it_ends_later(desk: Desk) -> None:
    path = desk.end("a-1")
    desk.end("a-1")
    desk.pass_s(AFTER_S)
    before = path.read_bytes()
    desk.end("a-1")
    desk.pass_s(60)

    assert (len(desk.told), desk.readings, path.read_bytes()) == (1, 1, before)


def test_fifty_ends_at_once_are_one_reading(desk: Desk) -> None:
    paths = [desk.end(f"a-{n}") for n in range(50)]
    desk.pass_s(AFTER_S)

    assert desk.readings == 1
    assert all(path.exists() for path in paths)


def test_proc_is_read_at_most_once_a_second(desk: Desk) -> None:
    for n in range(50):
        desk.end(f"a-{n}")
        desk.pass_s(0.02)
    desk.pass_s(AFTER_S + READING_EVERY_S)

    assert (desk.readings, len(desk.told), len(desk.snapshots)) == (2, 50, 0)


def test_nothing_is_waited_for_when_nothing_ended(desk: Desk) -> None:
    assert desk.snapshots.wait_s() is None
    desk.end("a-1")
    desk.pass_s(AFTER_S)
    assert desk.snapshots.wait_s() is None


def test_a_folder_that_was_removed_is_not_made_again(desk: Desk) -> None:
    path = desk.end("a-1")
    path.parent.rmdir()
    other = desk.end("b-1")
    desk.pass_s(AFTER_S)

    assert not path.parent.exists()
    assert other.exists()
    assert desk.told == [SnapshotWord("b-1")]


def test_what_is_about_to_be_removed_is_not_written_to(desk: Desk) -> None:
    path = desk.end("a-1")
    desk.snapshots.cancel("a-1")
    desk.pass_s(60)

    assert not path.exists()
    assert (len(desk.snapshots), desk.readings) == (0, 0)


def test_a_keeper_that_goes_takes_what_is_pending_at_once(desk: Desk) -> None:
    paths = [desk.end(f"a-{n}") for n in range(3)]
    desk.snapshots.finish()

    assert all(path.exists() for path in paths)
    assert len(desk.snapshots) == 0
    desk.snapshots.finish()
    assert desk.readings == 1


def test_a_real_survivor_is_found_by_its_token(desk: Desk) -> None:
    env = {**os.environ, "VIGIL_LAUNCH": "a-1", "SECRET": "hunter2"}
    argv = [sys.executable, "-c", "print(flush=True); input()", "hunter2"]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, start_new_session=True)
    try:
        assert child.stdout is not None
        child.stdout.readline()  # it runs: in the middle of an exec a process has no environment
        path = desk.end("a-1", agent=(1, 1))
        desk.pass_s(AFTER_S)

        (survivor,) = json.loads(path.read_text())["survivors"]
        assert (survivor["pid"], survivor["ppid"]) == (child.pid, os.getpid())
        assert survivor["start_ticks"] == process.read_start_ticks(child.pid)
        assert set(survivor) == {"pid", "start_ticks", "ppid", "name", "state", "rss_kb", "age_s"}
        assert "hunter2" not in path.read_text()
    finally:
        child.communicate(timeout=10)


def test_a_child_that_cleaned_its_environment_belongs_by_its_terminal_session() -> None:
    child = ScannedProcess(510, stat(510, 500, 900), None, True)

    assert pids(make_pending(root=(500, 90), agent=(502, 92)), child) == [510]
    assert pids(make_pending(agent=(500, 90)), child) == [510]
    assert pids(make_pending(root=(501, 90), agent=(500, 90)), child) == []


def test_what_began_after_the_end_or_bears_another_token_is_somebody_elses() -> None:
    late, other = ScannedProcess(510, stat(510, 500, 1001), None, True), ScannedProcess(511, stat(511, 500, 900), "b-1", True)
    theirs = ScannedProcess(512, stat(512, 500, 900), None, False)

    assert pids(make_pending(agent=(500, 90)), late, other, theirs) == []


def test_a_session_number_that_another_process_has_now_is_not_the_launchs_own() -> None:
    stranger, child = ScannedProcess(500, stat(500, 500, 700), None, True), ScannedProcess(510, stat(510, 500, 900), None, True)

    assert pids(make_pending(agent=(500, 90)), stranger, child) == []


def test_server_and_root_are_no_survivors_but_an_agent_that_outlives_them_is() -> None:
    server = ScannedProcess(499, stat(499, 499, 80), "a-1", True)
    root, agent = ScannedProcess(500, stat(500, 500, 90), "a-1", True), ScannedProcess(502, stat(502, 500, 92), "a-1", True)

    assert pids(make_pending(server=(499, 80), root=(500, 90), agent=(502, 92)), server, root, agent) == [502]


def test_a_snapshot_that_is_too_long_loses_its_oldest_samples_first() -> None:
    body: dict[str, Any] = dict.fromkeys(KEYS) | {name: [] for name in ("agent_samples", "survivors", "unknown")}
    body |= {"kernel": {"readable": True, "lines": ["x" * 400] * 50}, "top": [{"pid": n} for n in range(25)]}
    body["samples"] = [{"n": n, "x": "y" * 3000} for n in range(30)]

    data = fit(body)

    assert len(data) <= BYTES
    kept = json.loads(data)
    assert (kept["cut"], kept["samples"][-1]["n"]) == (["samples"], 29)
    assert (len(kept["top"]), len(kept["kernel"]["lines"])) == (25, 50)


def test_a_snapshot_full_of_everything_still_fits() -> None:
    text = "é" * 4000
    body: dict[str, Any] = dict.fromkeys(KEYS) | {"unknown": ["armed"]}
    body |= {name: [{"x": text}] * 100 for name in ("samples", "agent_samples", "survivors", "top")}
    body |= {"kernel": {"readable": True, "lines": [text] * 50}, "tree": {"at": 1.0, "processes": [{"x": text}] * 32}}

    assert len(fit(body)) <= BYTES
