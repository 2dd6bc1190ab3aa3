"""Want of memory: who was ended by the kernel is told from who was ended by hand; real cgroups, real kills.

The host's counter is everybody's: these tests take turns, and count on nothing that others on the host may add to.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import VIGIL, Instance, Json, kill, wait_for
from tests.live.test_deaths import wait_bundle
from tests.live.test_snapshots import read_exit, wait_snapshot
from vigil.kernel.cgroups import EVENTS, Cgroups

LIMIT_BYTES = 60 << 20
HOG = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\nx = b'x' * (200 << 20)"


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
        turn = os.open(top, os.O_RDONLY)
        fcntl.flock(turn, fcntl.LOCK_EX)
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
        os.close(turn)


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

    assert (oom["cgroup"], oom["cgroup_kills"]) == (str(cage.path), 1)
    assert oom["host_kills"] >= 1
    assert (by_hand["cgroup"], by_hand["cgroup_kills"]) == (str(cage.path), 0)
    body = wait_snapshot(vigil, hog)
    assert body["cgroup"]["max_bytes"] == LIMIT_BYTES
    assert body["armed"]["cgroup"]["oom_kills"] == 0
    if body["kernel"]["readable"]:
        assert (oom["named"], by_hand["named"]) == (True, False)
        assert f"Killed process {hog['pid']} (python3)" in oom["line"]
        assert oom["line"] in body["kernel"]["lines"]
    else:
        assert (oom["named"], by_hand["named"]) == (None, None)


def evidence_of(death: Json) -> list[str]:
    return [line["text"] for line in death["evidence"]]


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_the_cause_is_memory_by_the_kernel_nobody_by_hand_and_the_operator_by_vigil(
    vigil: Instance, cage: Cage, runtime: str
) -> None:
    hog, by_hand = (vigil.run(name, "python3", "-c", HOG, str(vigil.path / "go"), runtime=runtime) for name in ("hog", "other"))
    vigil.run("stopped", "sleep", "1000", runtime=runtime)
    cage.admit(hog["pid"])  # long after its birth: nobody has sampled where it is now
    cage.limit()
    kill(by_hand["pid"], signal.SIGKILL)
    assert vigil.wait_death("other")["cause"] == "killed-by-unknown"

    (vigil.path / "go").touch()
    death = wait_bundle(vigil, vigil.wait_death("hog")["id"])
    vigil.client.ask("stop", "stopped")

    assert (death["cause"], death["signal"], death["charged"]) == ("oom", 9, True), death
    (grew,) = (text for text in evidence_of(death) if text.startswith("the counter of the host grew by "))
    assert not grew.endswith(" 0")  # whoever else is on this host may have been ended too
    if death["kernel_lines"]:
        assert death["confidence"] == "certain"
        assert any(f"Killed process {hog['pid']}" in line for line in death["kernel_lines"])
    assert (death["changes"] or {}).get("oom_kills", 1) >= 1
    assert vigil.wait_death("stopped")["cause"] == "operator"
    page = vigil.ok("death", death["id"])
    assert "the kernel ended it for want of memory" in page


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_a_kill_in_a_cgroup_that_nobody_knows_is_memory_by_the_hosts_counter_alone(
    vigil: Instance, cage: Cage, runtime: str
) -> None:
    blind = ["setpriv", "--bounding-set=-syslog,-sys_admin"]  # as for most users, the kernel's log cannot be read
    if shutil.which(blind[0]) is None or os.getuid() != 0:
        pytest.skip("the right to read the kernel's log cannot be laid down here")
    subprocess.run([*blind, *VIGIL, "daemon", "start"], env=vigil.env, check=True, capture_output=True, timeout=60)
    hog = vigil.run("hog", "python3", "-c", HOG, str(vigil.path / "go"), runtime=runtime)
    cage.admit(hog["pid"])  # long after its birth: nobody has sampled where it is now
    cage.limit()

    (vigil.path / "go").touch()

    death = vigil.wait_death("hog")
    assert read_exit(vigil, hog)["oom"]["named"] is None
    assert (death["cause"], death["confidence"], death["signal"]) == ("oom", "likely", 9), death


def test_a_kill_for_want_of_memory_while_the_daemon_is_down_is_told_by_the_next(vigil: Instance, cage: Cage) -> None:
    hog = vigil.run("hog", "python3", "-c", HOG, str(vigil.path / "go"))
    cage.admit(hog["pid"])
    cage.limit()
    vigil.kill_daemon()
    (vigil.path / "go").touch()
    wait_for(lambda: read_exit(vigil, hog), 10, "the keeper's record")

    vigil.start()

    death = vigil.wait_death("hog")
    assert (death["cause"], death["observed_by"]) == ("oom", "keeper"), death


def test_several_that_the_kernel_ends_together_are_each_told_so(vigil: Instance, cage: Cage) -> None:
    names = ("one", "two", "three")
    for name in names:
        cage.admit(vigil.run(name, "python3", "-c", HOG, str(vigil.path / "go"), runtime="headless")["pid"])
    cage.limit()

    (vigil.path / "go").touch()

    assert [vigil.wait_death(name)["cause"] for name in names] == ["oom"] * 3
