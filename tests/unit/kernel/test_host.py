"""What can be read of a host is a fact; what cannot is None, and never an error."""

from __future__ import annotations

from pathlib import Path

from vigil.kernel.cgroups import Cgroups, Mount, path_within, place, read_mounts
from vigil.kernel.host import HostFacts, OomKills, read_host, read_oom_kills

MEMINFO = "MemTotal:       24682416 kB\nMemFree: 1 kB\nMemAvailable:   24139392 kB\nSwapTotal:  2048 kB\nSwapFree:   1024 kB\n"
VMSTAT = "nr_free_pages 6014166\noom_kill 3\nnuma_hit 9\n"
PRESSURE = "some avg10=1.25 avg60=0.10 avg300=0.00 total=1412\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1020\n"
V1_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:1 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_MOUNTS = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def make_cgroups(root: Path, mounts: str, processes: dict[int, str]) -> Cgroups:
    return Cgroups(write(root, {"self/mountinfo": mounts} | {f"{pid}/cgroup": text for pid, text in processes.items()}))


def make_v2(root: Path, point: Path, path: str = "/a.scope") -> Cgroups:
    write(point / path.lstrip("/"), {"memory.events": "low 0\noom 2\noom_kill 1\noom_group_kill 0\n"})
    return make_cgroups(root, f"29 23 0:26 / {point} rw - cgroup2 cgroup2 rw\n", {7: f"0::{path}\n"})


def test_every_fact_of_a_host_is_read(tmp_path: Path) -> None:
    files = {f"pressure/{what}": PRESSURE for what in ("memory", "io", "cpu")}
    proc = write(tmp_path, {"meminfo": MEMINFO, "vmstat": VMSTAT, "loadavg": "2.12 1.58 1.81 4/96 26098\n", **files})

    facts = read_host(proc)

    assert None not in facts.values()
    assert (facts["mem_total_kb"], facts["mem_available_kb"]) == (24682416, 24139392)
    assert (facts["swap_total_kb"], facts["swap_free_kb"], facts["oom_kills"]) == (2048, 1024, 3)
    assert (facts["load1"], facts["load15"]) == (2.12, 1.81)
    assert (facts["psi_memory_some_avg10"], facts["psi_io_full_total_us"]) == (1.25, 1020)


def test_a_host_that_shows_nothing_has_every_fact_unknown(tmp_path: Path) -> None:
    assert set(read_host(str(tmp_path)).values()) == {None}
    assert set(read_host(str(tmp_path))) == set(read_host())


def test_files_that_say_something_else_are_unknown(tmp_path: Path) -> None:
    names = ("meminfo", "vmstat", "loadavg", "pressure/memory", "pressure/io", "pressure/cpu")
    for text in ("\n", "x", "some", "MemTotal:\n", "a b c", "some avg10=x total=-1\n", "\noom_kill \n", "\0\xff"):
        assert set(read_host(write(tmp_path, dict.fromkeys(names, text))).values()) == {None}, text


def test_this_host_can_be_read() -> None:
    facts = read_host()

    assert isinstance(facts["mem_total_kb"], int)
    assert isinstance(facts["load1"], float)
    assert facts["oom_kills"] == read_oom_kills()


def test_a_reading_serves_all_who_ask_within_a_second(tmp_path: Path) -> None:
    now = 100.0
    host = HostFacts(write(tmp_path, {"vmstat": VMSTAT}), lambda: now)
    first = host.read()
    write(tmp_path, {"vmstat": VMSTAT.replace("3", "4")})

    now = 100.9
    assert host.read() == first
    now = 101.0
    assert host.read()["oom_kills"] == 4


def test_a_reading_is_not_changed_by_whoever_got_it(tmp_path: Path) -> None:
    host = HostFacts(write(tmp_path, {"vmstat": VMSTAT}), lambda: 0.0)
    host.read()["oom_kills"] = 99

    assert host.read()["oom_kills"] == 3


def test_memory_cgroups_are_where_the_memory_controller_is() -> None:
    assert read_mounts(V1_MOUNTS) == [Mount(1, "/", "/sys/fs/cgroup/memory")]
    assert read_mounts(V2_MOUNTS) == [Mount(2, "/", "/sys/fs/cgroup")]
    assert read_mounts("") == read_mounts("nonsense\n1 2 3\n") == []


def test_a_mount_with_spaces_in_its_name_is_found() -> None:
    assert read_mounts("1 2 0:3 / /mnt/a\\040b rw - cgroup2 cgroup2 rw\n") == [Mount(2, "/", "/mnt/a b")]


def test_the_cgroup_of_a_process_is_that_of_the_version_in_use() -> None:
    text = "9:name=systemd:/s\n4:cpu,memory:/m/x\n3:cpuset:/c\n0::/u\n"

    assert (path_within(text, 1), path_within(text, 2), path_within(text, None)) == ("/m/x", "/u", None)
    assert path_within("0::/a:b (deleted)\n", 2) == "/a:b"
    assert path_within("", 1) is path_within("0::/\n", 1) is None


def test_a_cgroup_is_placed_below_its_mount_and_the_mounts_root_is_stripped() -> None:
    docker = Mount(1, "/docker/abc", "/sys/fs/cgroup/memory")

    assert place(Mount(2, "/", "/sys/fs/cgroup"), "/user.slice/a") == "/sys/fs/cgroup/user.slice/a"
    assert place(Mount(2, "/", "/sys/fs/cgroup"), "/") == "/sys/fs/cgroup"
    assert place(docker, "/docker/abc") == "/sys/fs/cgroup/memory"
    assert place(docker, "/docker/abc/x") == "/sys/fs/cgroup/memory/x"


def test_a_cgroup_that_the_mount_does_not_show_has_no_place() -> None:
    docker = Mount(1, "/docker/abc", "/sys/fs/cgroup/memory")

    assert place(docker, "/docker/abcd") is place(docker, "/") is place(Mount(2, "/", "/c"), "/../other") is None


def test_the_counters_of_version_2(tmp_path: Path) -> None:
    cgroups = make_v2(tmp_path / "proc", tmp_path / "cg")
    path = tmp_path / "cg" / "a.scope"
    write(path, {"memory.current": "4096\n", "memory.max": "max\n", "memory.peak": "8192\n", "memory.swap.current": "0\n"})

    assert cgroups.path_of(7) == str(path)
    assert cgroups.read_counters(str(path)) == {
        "path": str(path),
        "version": 2,
        "oom_kills": 1,
        "current_bytes": 4096,
        "max_bytes": None,
        "peak_bytes": 8192,
        "swap_current_bytes": 0,
        "swap_max_bytes": None,
        "swap_peak_bytes": None,
    }


def test_the_counters_of_version_1(tmp_path: Path) -> None:
    mounts = f"35 31 0:32 / {tmp_path}/cg rw - cgroup cgroup rw,memory\n"
    cgroups = make_cgroups(tmp_path / "proc", mounts, {7: "4:memory:/x\n0::/\n"})
    path = write(
        tmp_path / "cg" / "x",
        {
            "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            "memory.usage_in_bytes": "4096\n",
            "memory.limit_in_bytes": "9223372036854771712\n",
            "memory.max_usage_in_bytes": "31457280\n",
            "memory.failcnt": "17\n",
        },
    )

    assert cgroups.path_of(7) == path
    counters = cgroups.read_counters(path)
    assert counters == {
        "path": path,
        "version": 1,
        "oom_kills": 2,
        "current_bytes": 4096,
        "max_bytes": None,
        "peak_bytes": 31457280,
        "limit_hits": 17,
    }


def test_a_cgroup_whose_memory_is_accounted_for_above_is_the_one_above(tmp_path: Path) -> None:
    cgroups = make_v2(tmp_path / "proc", tmp_path / "cg")
    (tmp_path / "cg" / "a.scope" / "b" / "c").mkdir(parents=True)
    write(tmp_path / "proc", {"8/cgroup": "0::/a.scope/b/c\n", "9/cgroup": "0::/\n"})

    assert cgroups.path_of(8) == str(tmp_path / "cg" / "a.scope")
    assert cgroups.path_of(9) is None  # the first cgroup of all accounts for nothing


def test_without_cgroups_nothing_is_known(tmp_path: Path) -> None:
    cgroups = Cgroups(str(tmp_path))

    readings = (cgroups.version, cgroups.path_of(1), cgroups.read_kills("/"), cgroups.read_counters("/"))
    assert readings == (None,) * 4


def test_a_process_that_is_gone_has_no_cgroup_and_a_cgroup_that_is_gone_no_counters(tmp_path: Path) -> None:
    cgroups = make_v2(tmp_path / "proc", tmp_path / "cg")

    assert cgroups.path_of(12345) is None
    assert cgroups.read_counters(str(tmp_path / "cg" / "gone")) is cgroups.read_counters(None) is None
    assert cgroups.read_kills(str(tmp_path / "cg" / "gone")) is None


def test_what_was_read_before_a_moment_says_nothing_of_what_came_after(tmp_path: Path) -> None:
    now = 10.0
    host = HostFacts(write(tmp_path, {"vmstat": VMSTAT}), lambda: now)
    before = host.read()["oom_kills"]
    write(tmp_path, {"vmstat": VMSTAT.replace(f"oom_kill {before}", "oom_kill 99")})

    now = 10.5
    assert host.read()["oom_kills"] == before
    assert host.read(since=10.2)["oom_kills"] == 99


def test_a_counter_that_is_kept_open_says_what_it_is_now(tmp_path: Path) -> None:
    proc = write(tmp_path, {"vmstat": VMSTAT})
    kills = OomKills(proc)
    before = kills.read()
    write(tmp_path, {"vmstat": VMSTAT.replace("oom_kill 3", "oom_kill 14")})

    assert (before, kills.read()) == (3, 14)


def test_a_counter_that_is_not_there_is_none() -> None:
    assert OomKills("/nowhere").read() is None
