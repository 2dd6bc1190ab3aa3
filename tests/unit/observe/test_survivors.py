"""Only processes of the launch itself are ever taken for its survivors (P9)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.builders import make_launch
from vigil.core.model.launch import Launch, ProcessId
from vigil.daemon.act.signals import end_processes
from vigil.kernel.process import read_boot, read_start_ticks
from vigil.observe.survivors import ELSEWHERE, SeenProcess, read_processes, survivors_of

BOOT = "b00t:1"
ROOT = ProcessId(500, 100, BOOT)


def launch() -> Launch:
    return make_launch(process=ProcessId(502, 102, BOOT), root=ROOT, server=ProcessId(499, 99, BOOT))


def seen(pid: int, start_ticks: int, sid: int, launch_id: str | None = None) -> SeenProcess:
    return SeenProcess(ProcessId(pid, start_ticks, BOOT), sid, launch_id)


def start_waiting() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def start_marked(**marks: str) -> subprocess.Popen[bytes]:
    """Start a process with marks in its environment, and wait until it runs: in the middle of an exec it has none."""
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **marks},
        start_new_session=True,
    )
    assert child.stdout is not None and child.stdout.readline() == b"\n"
    return child


def test_whoever_bears_the_token_belongs_to_the_launch_wherever_it_is() -> None:
    child = seen(900, 900, 900, launch().id)

    assert survivors_of(launch(), [], [child], ended_ticks=200) == [child.process]


def test_a_child_that_cleaned_its_environment_belongs_to_the_terminal_session() -> None:
    child = seen(510, 110, 500)

    assert survivors_of(launch(), [], [child], ended_ticks=None) == [child.process]
    assert survivors_of(launch(), [], [seen(500, 100, 500), child], ended_ticks=None) == [ROOT, child.process]


def test_a_session_number_that_another_process_has_now_is_not_the_launchs_own() -> None:
    stranger, its_child = seen(500, 7000, 500), seen(701, 7001, 500)

    assert survivors_of(launch(), [], [stranger, its_child], ended_ticks=200) == []
    assert survivors_of(launch(), [], [stranger, its_child], ended_ticks=None) == []


def test_what_began_after_the_launch_ended_is_somebody_elses() -> None:
    assert survivors_of(launch(), [], [seen(701, 7001, 500)], ended_ticks=200) == []


def test_a_process_of_another_launch_is_spared_even_in_the_same_session() -> None:
    assert survivors_of(launch(), [], [seen(510, 110, 500, "other-1")], ended_ticks=None) == []


def test_what_is_to_be_spared_is_spared() -> None:
    server = seen(499, 99, 499, launch().id)

    assert survivors_of(launch(), [server.process], [server], ended_ticks=None) == []


def test_a_real_process_is_seen_with_its_session_and_token(tmp_path: Path) -> None:
    child = start_marked(VIGIL_LAUNCH="real-7")
    try:
        boot = read_boot()
        (found,) = [one for one in read_processes(boot, str(tmp_path)) if one.process.pid == child.pid]

        assert (found.launch_id, found.sid) == ("real-7", child.pid)
        assert found.process == ProcessId(child.pid, read_start_ticks(child.pid) or 0, boot)
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    ("named", "whose"), [("ours", "real-8"), ("theirs", ELSEWHERE), ("gone", "real-8")], ids=["ours", "theirs", "moved"]
)
def test_a_process_of_the_same_launch_in_a_copied_home_is_not_ours(tmp_path: Path, named: str, whose: str) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    child = start_marked(VIGIL_LAUNCH="real-8", VIGIL_SPOOL=str(tmp_path / named))
    try:
        boot = read_boot()
        process = ProcessId(child.pid, read_start_ticks(child.pid) or 0, boot)
        seen_now = [one for one in read_processes(boot, str(tmp_path / "ours")) if one.sid == child.pid]

        assert [one.launch_id for one in seen_now] == [whose]
        unmarked = seen(child.pid + 1, process.start_ticks, child.pid, None)
        found = survivors_of(make_launch("real", 8, process=process), [], [*seen_now, unmarked], ended_ticks=None)
        assert bool(found) == (whose != ELSEWHERE)
    finally:
        child.kill()
        child.communicate()


async def test_a_process_of_another_boot_is_never_signalled() -> None:
    child = start_waiting()
    try:
        ticks = read_start_ticks(child.pid) or 0

        assert await end_processes([ProcessId(child.pid, ticks, "another-boot:1")], grace_s=0.1) == []
        assert child.poll() is None
        assert await end_processes([ProcessId(child.pid, ticks, read_boot())], grace_s=5) == []
        assert child.wait(5) == -signal.SIGTERM
    finally:
        child.kill()
        child.communicate()
