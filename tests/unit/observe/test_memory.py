"""What a launch could still use is what the host has, and no more than any cgroup around it leaves."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.kernel.cgroups import EVENTS, Cgroups
from vigil.observe.memory import FILES, Memory

MIB = 1 << 20
HOST_BYTES = 1000 * MIB
NO_LIMIT = {1: "9223372036854771712", 2: "max"}
MOUNTED = {1: "cgroup cgroup rw,memory", 2: "cgroup2 cgroup2 rw"}
STATISTICS = {
    1: "cache 5\ninactive_file 1\nactive_file 2\ntotal_cache 3\ntotal_inactive_file {}\ntotal_active_file 4\n",
    2: "anon 5\ninactive_file_of_another_kernel 1\ninactive_file {}\nactive_file 2\n",
}
PID = 7


class World:
    """A made-up host, whose process 7 is in the cgroup /a/b."""

    def __init__(self, root: Path, version: int) -> None:
        self.proc, self.point, self.version = root / "proc", root / "cgroup", version
        own = "4:memory:/a/b\n0::/\n" if version == 1 else "0::/a/b\n"
        self.write("self/mountinfo", f"29 23 0:26 / {self.point} rw - {MOUNTED[version]}\n")
        self.write(f"{PID}/cgroup", own)
        self.write("meminfo", f"MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   {HOST_BYTES // 1024} kB\nBuffers: 3 kB\n")
        for path in ("a/b", "a"):
            self.limit(path, NO_LIMIT[version], used=0)

    def write(self, name: str, text: str) -> None:
        (self.proc / name).parent.mkdir(parents=True, exist_ok=True)
        (self.proc / name).write_text(text)

    def limit(self, path: str, limit: int | str, used: int, reclaimable: int = 0) -> None:
        """Give a cgroup its limit, and say what of it is in use."""
        folder, files = self.point / path, FILES[self.version]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / EVENTS[self.version]).touch()
        (folder / files["max_bytes"]).write_text(f"{limit}\n")
        (folder / files["current_bytes"]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(STATISTICS[self.version].format(reclaimable))

    def read(self) -> int | None:
        return Memory(str(self.proc)).read(PID)


@pytest.fixture(params=[1, 2])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(tmp_path, request.param)


def test_without_a_limit_it_is_what_the_host_has(world: World) -> None:
    assert world.read() == HOST_BYTES


@pytest.mark.parametrize("path", ["a/b", "a"])
def test_the_limit_of_every_cgroup_around_us_counts(world: World, path: str) -> None:
    world.limit(path, 300 * MIB, used=100 * MIB)

    assert world.read() == 200 * MIB


def test_the_narrowest_limit_decides(world: World) -> None:
    world.limit("a/b", 900 * MIB, used=100 * MIB)
    world.limit("a", 500 * MIB, used=450 * MIB)

    assert world.read() == 50 * MIB


def test_the_limit_of_a_cgroup_beside_us_does_not_count(world: World) -> None:
    world.limit("a/c", 1, used=1)

    assert world.read() == HOST_BYTES


def test_the_limit_of_a_container_counts_where_its_cgroup_is_the_first_to_be_seen(world: World) -> None:
    world.write("self/mountinfo", f"29 23 0:26 /a/b {world.point} rw - {MOUNTED[world.version]}\n")
    world.limit("", 300 * MIB, used=100 * MIB)

    assert world.read() == 200 * MIB


def test_what_a_cgroup_leaves_counts_only_where_it_is_less_than_the_host_has(world: World) -> None:
    world.limit("a/b", 2 * HOST_BYTES, used=0)
    assert world.read() == HOST_BYTES

    world.limit("a/b", 2 * HOST_BYTES, used=2 * HOST_BYTES - 100 * MIB)
    assert world.read() == 100 * MIB

    world.limit("a/b", 2 * HOST_BYTES, used=2 * HOST_BYTES, reclaimable=HOST_BYTES + 1)
    assert world.read() == HOST_BYTES


def test_files_that_nobody_used_lately_are_as_good_as_free(world: World) -> None:
    world.limit("a/b", 300 * MIB, used=300 * MIB, reclaimable=120 * MIB)

    assert world.read() == 120 * MIB


def test_what_is_left_is_never_less_than_nothing_nor_more_than_the_limit(world: World) -> None:
    world.limit("a/b", 100 * MIB, used=150 * MIB, reclaimable=20 * MIB)
    assert world.read() == 0

    world.limit("a/b", 100 * MIB, used=50 * MIB, reclaimable=80 * MIB)  # the two are not read at the same moment
    assert world.read() == 100 * MIB


def test_a_limit_of_nothing_leaves_nothing(world: World) -> None:
    world.limit("a", 0, used=0)

    assert world.read() == 0


def test_a_cgroup_whose_use_cannot_be_read_is_left_out_and_those_above_it_are_not(world: World) -> None:
    world.limit("a", 300 * MIB, used=100 * MIB)
    world.limit("a/b", 10 * MIB, used=5 * MIB)
    (world.point / "a/b" / FILES[world.version]["current_bytes"]).unlink()

    assert world.read() == 200 * MIB


def test_without_its_statistics_nothing_of_a_cgroup_is_taken_for_free(world: World) -> None:
    world.limit("a/b", 300 * MIB, used=100 * MIB, reclaimable=50 * MIB)
    (world.point / "a/b/memory.stat").unlink()

    assert world.read() == 200 * MIB


def test_a_host_that_does_not_say_leaves_it_to_the_cgroups(world: World) -> None:
    world.write("meminfo", "MemTotal: 9 kB\n")
    assert world.read() is None

    world.limit("a", 300 * MIB, used=100 * MIB)
    assert world.read() == 200 * MIB


def test_a_process_that_is_gone_is_in_no_cgroup(world: World) -> None:
    world.limit("a/b", 1, used=1)
    (world.proc / f"{PID}/cgroup").unlink()

    assert world.read() == HOST_BYTES


def test_where_nothing_can_be_read_nothing_is_known(tmp_path: Path) -> None:
    assert Memory(str(tmp_path / "proc")).read(os.getpid()) is None
    assert Memory(str(tmp_path / "a\udcffb")).read(os.getpid()) is None


@given(st.lists(st.sampled_from(["", "max", "-1", "0", "12 kB", "7\n8", "x", "\0", "9" * 30, " "]), min_size=5, max_size=5))
def test_whatever_the_files_hold_it_is_a_number_of_bytes_or_unknown(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    for version in (1, 2):
        world = World(tmp_path_factory.mktemp("world"), version)
        world.write("meminfo", f"MemAvailable: {texts[0]}\nMemAvailable:\n")
        for name, text in zip(FILES[version].values(), texts[1:], strict=False):
            (world.point / "a/b" / name).write_text(text)
        (world.point / "a/b/memory.stat").write_text(f"\n{STATISTICS[version].format(texts[4])}")

        found = world.read()

        assert found is None or found >= 0


def test_this_host_can_be_read() -> None:
    found = Memory().read(os.getpid())

    assert found is not None
    assert 0 < found < 1 << 50


# A real cgroup


@pytest.fixture
def caged() -> Iterator[tuple[int, Path]]:
    """A sleeping process in a memory cgroup of its own; skipped where none can be made."""
    version = Cgroups().version
    top = {1: Path("/sys/fs/cgroup/memory"), 2: Path("/sys/fs/cgroup")}.get(version or 0, Path("/nonexistent"))
    cage = top / f"vigil-unit-{os.getpid()}"
    try:
        cage.mkdir()
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made here: {error}")
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        if not (cage / EVENTS[version or 0]).exists():
            pytest.skip(f"{top} does not account for memory")
        (cage / "cgroup.procs").write_text(f"{sleeper.pid}\n")
        yield sleeper.pid, cage / FILES[version or 0]["max_bytes"]
    finally:
        sleeper.kill()
        sleeper.wait(10)
        remove(cage, within_s=10)


def remove(cage: Path, within_s: float) -> None:
    until = time.monotonic() + within_s
    while cage.exists():
        try:
            cage.rmdir()
        except OSError:  # its last process is still on its way out
            assert time.monotonic() < until, f"{cage} cannot be removed"
            time.sleep(0.01)


def test_a_real_limit_is_seen_for_a_process_inside_it_and_for_no_other(caged: tuple[int, Path]) -> None:
    pid, limit = caged

    limit.write_text(f"{64 * MIB}\n")

    inside, outside = Memory().read(pid), Memory().read(os.getpid())
    assert inside is not None
    assert outside is not None
    assert 32 * MIB < inside <= 64 * MIB < outside


def test_one_that_is_read_often_sees_the_limit_of_another_process_and_one_that_is_raised(caged: tuple[int, Path]) -> None:
    pid, limit = caged
    limit.write_text(f"{64 * MIB}\n")
    memory = Memory()

    outside, inside = memory.read(os.getpid()), memory.read(pid)
    limit.write_text(f"{128 * MIB}\n")
    later = memory.read(pid)

    assert inside is not None and outside is not None and later is not None
    assert 32 * MIB < inside <= 64 * MIB < later <= 128 * MIB < outside
