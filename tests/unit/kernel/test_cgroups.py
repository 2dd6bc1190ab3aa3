"""A cgroup for each launch: made, entered, read, killed and removed, on a real cgroup2 where root may mount one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import wait_for
from vigil.kernel import cgroups
from vigil.kernel.cgroups import LEAF, CgroupRefused, Cgroups, inside

INSTANCE = "0123456789ab"


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A cgroup of this test's own in a cgroup2 that is mounted for it."""
    point = tmp_path / "cgroup2"
    point.mkdir()
    if subprocess.run(["mount", "-t", "cgroup2", "none", str(point)], capture_output=True).returncode:
        pytest.skip("only root may mount a cgroup2")
    base = point / f"vigil-test-{os.getpid()}"
    try:
        base.mkdir()
        yield base
    finally:
        cgroups.remove(str(base))
        subprocess.run(["umount", str(point)], check=True)


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A folder with the files of a cgroup2 that has all controllers."""
    base = tmp_path / "fake"
    base.mkdir()
    for name, text in (("procs", ""), ("controllers", "cpu io memory pids\n"), ("subtree_control", "")):
        (base / f"cgroup.{name}").write_text(text)
    return base


def start_inside(folder: Path | str, script: str) -> subprocess.Popen[bytes]:
    with inside(str(folder)):
        return subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_all_that_descends_from_a_launch_is_in_its_cgroup_and_ends_with_it(mounted: Path) -> None:
    place = cgroups.prepare(INSTANCE, os.getpid(), str(mounted))
    folder = f"{place.folder}/s1-1"
    cgroups.make(folder, {})

    agent = start_inside(folder, "env -i setsid -f sh -c 'echo $$; exec sleep 600'; exec sleep 600")
    assert agent.stdout is not None
    child = int(agent.stdout.readline())

    assert cgroups.read_members(folder) == {agent.pid, child}
    assert cgroups.read_launch(child, INSTANCE) == "s1-1"
    assert cgroups.read_launch(os.getpid(), INSTANCE) is None
    assert cgroups.read_launch(child, "ffffffffffff") is None
    cgroups.kill(folder, spare=None)
    agent.communicate(timeout=10)  # its output ends: the child, which had it open, is gone too
    assert agent.returncode == -9
    wait_until_empty(folder)
    cgroups.remove(folder)
    assert not os.path.exists(folder)


def wait_until_empty(folder: str) -> None:
    wait_for(lambda: not cgroups.is_populated(folder), 10, "the cgroup to be empty")


def test_a_cgroup_with_the_keeper_in_it_is_not_killed(mounted: Path) -> None:
    folder = f"{mounted}/s1-1"
    cgroups.make(folder, {})
    agent = start_inside(folder, "read _")

    cgroups.kill(folder, spare=agent.pid)

    assert agent.poll() is None
    agent.communicate(b"\n", timeout=10)
    assert agent.returncode == 0


def test_a_cgroup_with_a_living_process_is_not_removed_and_those_below_it_go_with_it(mounted: Path) -> None:
    folder = f"{mounted}/s1-1"
    cgroups.make(folder, {})
    os.mkdir(f"{folder}/nested")
    agent = start_inside(f"{folder}/nested", "read _")
    assert cgroups.read_members(folder) == {agent.pid}

    cgroups.remove(folder)
    assert os.path.exists(f"{folder}/nested")
    agent.communicate(b"\n", timeout=10)
    wait_until_empty(folder)
    cgroups.remove(folder)

    assert not os.path.exists(folder)


def test_a_cgroup_that_is_gone_is_not_entered_and_leaves_us_where_we_were(mounted: Path) -> None:
    before = Path("/proc/self/cgroup").read_text()

    with pytest.raises(CgroupRefused), inside(f"{mounted}/s1-1"):
        raise AssertionError

    assert Path("/proc/self/cgroup").read_text() == before


def test_a_supervisor_that_an_agent_started_leaves_the_cgroup_of_that_launch(mounted: Path) -> None:
    place = cgroups.prepare(INSTANCE, os.getpid(), str(mounted))
    folder = f"{place.folder}/s1-1"
    cgroups.make(folder, {})
    script = "import os; from vigil.kernel import cgroups; cgroups.leave(); print(open('/proc/self/cgroup').read())"

    with inside(folder):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    (line,) = [line for line in done.stdout.splitlines() if line.startswith("0::")]
    assert line == f"0::/{mounted.name}"


def test_a_folder_that_is_no_cgroup2_is_named(tmp_path: Path) -> None:
    place = cgroups.prepare(INSTANCE, os.getpid(), str(tmp_path))

    assert (place.folder, place.why) == ("", f"{tmp_path} is no folder of a cgroup2")


def test_a_kernel_without_cgroup_kill_is_named_and_nothing_is_left(fake: Path) -> None:
    place = cgroups.prepare(INSTANCE, os.getpid(), str(fake))

    assert place.folder == "" and "cgroup.kill" in place.why
    assert not list(fake.glob("vigil-*"))


def test_a_limit_that_the_kernel_refuses_leaves_no_cgroup(mounted: Path) -> None:
    with pytest.raises(OSError, match=r"memory\.max"):  # this cgroup2 has no memory controller, or refuses the text
        cgroups.make(f"{mounted}/s1-1", {"memory.max": "no number"})

    assert not (mounted / "s1-1").exists()


def test_the_keepers_leaf_and_a_launch_are_below_the_same_base() -> None:
    base = "/sys/fs/cgroup/user.slice/run-1.scope"
    for folder in (f"{base}/vigil-{INSTANCE}/s1-1", f"{base}/vigil-{INSTANCE}/s1-1/below"):
        found = cgroups.LAUNCH.fullmatch(folder)
        assert found is not None and found[1] == base
    assert cgroups.LAUNCH.fullmatch(f"{base}/{LEAF}") is None
    assert cgroups.LAUNCH.fullmatch(f"{base}/vigil-{INSTANCE}") is None


def test_a_kill_for_want_of_memory_is_counted_in_the_launchs_own_cgroup(tmp_path: Path) -> None:
    """A tree of files stands for a cgroup2 with the memory controller: two launches, one of which met its limit."""
    point = tmp_path / "cgroup"
    for launch, kills in (("s1-1", 1), ("s2-1", 0)):
        folder = point / f"vigil-{INSTANCE}" / launch
        folder.mkdir(parents=True)
        (folder / "memory.events").write_text(f"low 0\nhigh 0\nmax 7\noom {kills}\noom_kill {kills}\noom_group_kill 0\n")
        proc = tmp_path / "proc" / launch.partition("-")[0].removeprefix("s")
        proc.mkdir(parents=True)
        (proc / "cgroup").write_text(f"0::/vigil-{INSTANCE}/{launch}\n")
    (tmp_path / "proc" / "self").mkdir()
    mount = f"30 23 0:26 / {point} rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
    (tmp_path / "proc" / "self" / "mountinfo").write_text(mount)
    seen = Cgroups(str(tmp_path / "proc"))

    paths = [seen.path_of(pid) for pid in (1, 2)]

    assert paths == [str(point / f"vigil-{INSTANCE}" / launch) for launch in ("s1-1", "s2-1")]
    assert [seen.read_kills(path or "") for path in paths] == [1, 0]
