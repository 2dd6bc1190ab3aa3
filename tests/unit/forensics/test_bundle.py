"""A bundle holds what was seen around a death, whole, bounded and without secrets, whatever its sources look like."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.builders import make_death, make_intent
from vigil.core.model.death import Death, EvidenceLine
from vigil.forensics.bundle import assemble, read_bundle
from vigil.forensics.disks import is_full, read_disks
from vigil.forensics.facts import read_facts
from vigil.forensics.folders import exchange, put_in_place
from vigil.keeper.records import record_exit

AT = 1_790_000_000.0
BOUND = 256 << 10
SECRET = "tok-8d1f3a77c2e94b"
HOST = {
    "mem_total_kb": 16_000_000,
    "mem_available_kb": 200_000,
    "swap_total_kb": 1000,
    "swap_free_kb": 10,
    "oom_kills": 4,
    "load1": 3.5,
    "psi_memory_some_avg10": 40.0,
    "psi_memory_some_total_us": 900_000,
}
SNAPSHOT: dict[str, Any] = {
    "launch": "s1-1",
    "at": AT + 0.5,
    "boot_s": 1000.5,
    "host": HOST,
    "armed": HOST
    | {"mem_available_kb": 9_000_000, "oom_kills": 3, "psi_memory_some_total_us": 100_000, "load1": 0.1}
    | {"cgroup": {"path": "/sys/fs/cgroup/x", "oom_kills": 0}},
    "samples": [{"at": AT - age, "mem_available_kb": 100_000 + age} for age in (30, 20, 10)],
    "agent_samples": [{"at": AT - 20, "rss_kb": 900}, {"at": AT - 10, "rss_kb": 500}],
    "tree": {"at": AT - 10, "processes": [{"pid": 7, "ppid": 1, "name": "agent", "state": "S", "rss_kb": 500}]},
    "survivors": [{"pid": 9, "start_ticks": 5, "ppid": 1, "name": "server", "state": "S", "rss_kb": 10, "age_s": 3.0}],
    "top": [{"pid": 7, "name": "agent", "rss_kb": 500}],
    "kernel": {"readable": True, "lines": ["Out of memory: Killed process 7 (agent)"]},
    "cgroup": {"path": "/sys/fs/cgroup/x", "oom_kills": 1},
    "unknown": ["psi_io_some_avg10"],
}
HEADLESS = {"runtime": "headless", "argv": ["agent"], "env": {}}
BROKEN = [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b"[" * 100_000, b"\0" * 5000, b'{"a":' * 900 + b"1" + b"}" * 900]
SOURCES = (
    "exit.json",
    "inner-exit.json",
    "server-exit.json",
    "shim-exit",
    "snapshot.json",
    "launch.json",
    "screen",
    "stderr.log",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
FULL_DISK = """
import resource, sys
from pathlib import Path
from tests.unit.builders import make_death
from vigil.forensics.bundle import assemble
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
assemble(Path(sys.argv[1]), Path(sys.argv[2]), make_death(), [], None, [], str, 0.0)
"""
ASSEMBLER = """
import sys
from pathlib import Path
from tests.unit.builders import make_death
from vigil.forensics.bundle import assemble
print("ready", flush=True)
while True:
    assemble(Path(sys.argv[1]), Path(sys.argv[2]), make_death(), [], None, [], str, 0.0)
"""


@pytest.fixture
def deaths(tmp_path: Path) -> Path:
    return tmp_path / "deaths"


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    folder = tmp_path / "launches" / "s1-1"
    folder.mkdir(parents=True)
    return folder


def write(folder: Path, **values: Any) -> None:
    """Write records into a launch's folder: `snapshot={...}` is snapshot.json."""
    for name, value in values.items():
        (folder / f"{name}.json").write_text(json.dumps(value))


def put_together(
    deaths: Path,
    launch: Path,
    death: Death | None = None,
    events: Sequence[dict[str, Any]] = (),
    activity: str | None = None,
    disks: Sequence[Path] = (),
    redact: Callable[[str], str] = str,
) -> dict[str, Any]:
    """Assemble a bundle and return its report, after looking at what every bundle must keep to."""
    death = death or make_death(at=AT)
    folder = assemble(deaths, launch, death, events, activity, disks, redact, AT + 1.0)
    assert folder == deaths / death.id
    assert [path.name for path in deaths.iterdir()] == [death.id], "something was left beside it"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert sum(file.stat().st_size for file in files) <= BOUND
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"), parse_constant=pytest.fail)
    return report


def text_of(deaths: Path, name: str) -> str:
    return (deaths / "d-s1-1" / name).read_text("utf-8")


def hide(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def test_a_bundle_tells_all_that_the_records_tell(deaths: Path, launch: Path) -> None:
    write(launch, snapshot=SNAPSHOT)
    record_exit(str(launch), {"role": "agent", "pid": 7, "status": 9, "source": "wait", "at": AT})
    (launch / "screen").write_text("\x1b[31mthe end\x1b[0m\n\n\n")
    os.utime(launch / "screen", (AT - 4, AT - 4))

    report = put_together(deaths, launch, events=[{"kind": "session.died"}], activity="Bash: make")

    assert report["death"]["id"] == "d-s1-1" and report["death"]["at"] == AT
    assert report["exits"]["agent"] == {
        "role": "agent",
        "pid": 7,
        "status": 9,
        "source": "wait",
        "at": AT,
        "exit_code": None,
        "signal": 9,
    }
    for section in ("host", "armed", "samples", "agent_samples", "tree", "survivors", "top", "kernel", "cgroup"):
        assert report[section] == SNAPSHOT[section]
    assert report["memory"] == {
        "total_kb": 16_000_000,
        "available_kb": 200_000,
        "swap_total_kb": 1000,
        "swap_free_kb": 10,
        "least_available_kb": 100_010,
        "agent_rss_kb": 500,
        "agent_rss_age_s": 10.0,
        "agent_peak_kb": 900,
    }
    assert report["changes"] == {
        "mem_available_kb": -8_800_000,
        "swap_free_kb": 0,
        "oom_kills": 1,
        "psi_memory_some_total_us": 800_000,
        "cgroup.oom_kills": 1,
    }
    assert (report["open_tool"], report["events"]) == ("Bash: make", [{"kind": "session.died"}])
    assert report["screen"] == {"at": AT - 4, "age_s": 4.0, "size_bytes": 19}
    assert report["unknown"] == ["psi_io_some_avg10: the keeper could not read it"]
    assert report["cut"] == [] and report["written_at"] == AT + 1.0
    assert text_of(deaths, "screen.txt") == "the end\n"


def test_what_a_bundle_holds_is_read_back(deaths: Path, launch: Path) -> None:
    write(launch, snapshot=SNAPSHOT)
    (launch / "screen").write_text("\n".join(f"row {number}  \n" for number in range(100)))
    (launch / "stderr.log").write_text("".join(f"line {number}\n\n" for number in range(100)))
    put_together(deaths, launch, events=[{"kind": "session.died"}], activity="a tool", disks=[launch])

    bundle = read_bundle(deaths / "d-s1-1")

    assert bundle is not None
    assert bundle.path == deaths / "d-s1-1"
    assert bundle.last_events == [{"kind": "session.died"}]
    assert bundle.pane_tail == [f"row {number}" for number in range(50, 100)]
    assert len(bundle.stderr_tail) == 50 and bundle.stderr_tail[-3:] == ["line 98", "", "line 99"]
    assert bundle.memory is not None and bundle.memory["agent_rss_kb"] == 500
    assert bundle.survivors == SNAPSHOT["survivors"]
    assert bundle.kernel_lines == SNAPSHOT["kernel"]["lines"]
    assert bundle.tree == SNAPSHOT["tree"]
    assert bundle.screen_age_s is not None
    assert [disk["path"] for disk in bundle.disk] == [str(launch)]


CAUSE = "Error: the very cause"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"noise\n" * 40_000 + CAUSE.encode() + b"\n", CAUSE),
        (b"noise\n" * 40_000 + CAUSE.encode(), CAUSE),
        (b"x" * (1 << 20) + CAUSE.encode(), CAUSE),
        (b"first\n" + b"x" * (1 << 20) + CAUSE.encode() + b"\n", CAUSE),
        (b"\xff\xfe\x80" * 100_000 + CAUSE.encode() + b"\xff", CAUSE + "\ufffd"),
        ("世".encode() * 100_000 + CAUSE.encode(), CAUSE),
        (b"\x1b[31m" * 100_000 + CAUSE.encode(), CAUSE),
        (b"\x1b]0;a title without end\n" * 10_000 + CAUSE.encode(), CAUSE),
        (b"\0" * 1_000_000 + CAUSE.encode() + b"\n", CAUSE),
        (b"1%\r2%\r" * 50_000 + CAUSE.encode() + b"\r\n", CAUSE),
        (CAUSE.encode(), CAUSE),
    ],
    ids=[
        "lines",
        "no end",
        "one long line",
        "long last line",
        "no UTF-8",
        "wide",
        "colours",
        "title",
        "hole",
        "progress",
        "short",
    ],
)
@pytest.mark.parametrize("name", ["stderr", "stdout"])
def test_the_last_line_is_there(deaths: Path, launch: Path, name: str, content: bytes, expected: str) -> None:
    (launch / {"stderr": "stderr.log", "stdout": "stdout.jsonl"}[name]).write_bytes(content)

    report = put_together(deaths, launch)

    text = text_of(deaths, f"{name}.txt")
    assert text.endswith(f"{expected}\n")
    assert len(text.encode()) <= (48 << 10) + 1
    assert not {char for char in text if ord(char) < 32} - {"\n", "\t"}
    assert report[name]["size_bytes"] == len(content)
    assert bool(report["cut"]) == (len(content) > 1000)


def test_a_sparse_file_of_many_gigabytes_is_read_at_its_end(deaths: Path, launch: Path) -> None:
    with (launch / "stderr.log").open("wb") as file:
        file.truncate(64 << 30)
        file.seek(0, os.SEEK_END)
        file.write(CAUSE.encode())

    put_together(deaths, launch)

    assert text_of(deaths, "stderr.txt") == f"{CAUSE}\n"


def test_secrets_are_in_no_file_of_a_bundle(deaths: Path, launch: Path) -> None:
    write(launch, snapshot=SNAPSHOT | {"tree": {"processes": [{"name": SECRET}]}, "kernel": {"lines": [f"x {SECRET}"]}})
    record_exit(str(launch), {"role": "agent", "status": 1, "source": SECRET})
    for name in ("screen", "stderr.log", "stdout.jsonl"):
        (launch / name).write_text(f"{SECRET}\n" * 20_000)
    death = make_death(
        at=AT, intent=make_intent(reason=SECRET), evidence=(EvidenceLine("x", SECRET), EvidenceLine("y", "x" * 990 + SECRET))
    )

    put_together(deaths, launch, death, [{"data": {"why": [SECRET]}}], SECRET, [Path(f"/{SECRET}")], hide)

    for file in (deaths / "d-s1-1").iterdir():
        text = file.read_text()
        assert SECRET[:6] not in text
        assert "[redacted]" in text


@pytest.mark.parametrize("shift", range(40))
def test_no_cut_leaves_half_a_secret(deaths: Path, launch: Path, shift: int) -> None:
    (launch / "stderr.log").write_text((f"{SECRET} " * 10_000) + "x" * shift)

    put_together(deaths, launch, redact=hide)

    assert set(text_of(deaths, "stderr.txt").split()[1:]) <= {"[redacted]", "x" * shift}
    assert not SECRET.endswith(text_of(deaths, "stderr.txt").split()[0])


def test_a_colour_inside_a_secret_does_not_hide_it(deaths: Path, launch: Path) -> None:
    (launch / "screen").write_text(f"{SECRET[:5]}\x1b[1m{SECRET[5:]}")

    put_together(deaths, launch, redact=hide)

    assert text_of(deaths, "screen.txt") == "[redacted]\n"


def test_without_any_source_the_bundle_says_what_it_does_not_know(deaths: Path, launch: Path) -> None:
    report = put_together(deaths, launch / "gone", disks=[launch / "gone"])

    assert report["unknown"] == [
        "exit: nobody recorded how it ended",
        "snapshot.json: it is not there",
        f"disk {launch / 'gone'}: it is not there",
        "screen: it is not there",
        "stderr.log: it is not there",
        "stdout.jsonl: it is not there",
    ]
    assert report["death"]["cause"] == "crash"


def test_a_headless_launch_misses_no_screen_and_one_in_a_pane_no_files(deaths: Path, launch: Path) -> None:
    write(launch, launch=HEADLESS)
    assert [line for line in put_together(deaths, launch)["unknown"] if "screen" in line] == []

    write(launch, launch={"runtime": "tmux"})
    lines = put_together(deaths, launch)["unknown"]
    assert "screen: it is not there" in lines and not [line for line in lines if "std" in line]


@pytest.mark.parametrize("content", BROKEN, ids=lambda content: repr(content[:12]))
@pytest.mark.parametrize("name", SOURCES)
def test_a_broken_source_costs_itself_only(deaths: Path, launch: Path, name: str, content: bytes) -> None:
    write(launch, snapshot=SNAPSHOT)
    record_exit(str(launch), {"role": "root", "status": 1 << 8, "at": AT})
    (launch / "stdout.jsonl").write_text("said")
    (launch / name).write_bytes(content)

    report = put_together(deaths, launch)

    assert report["exits"]["root"]["exit_code"] == 1
    assert text_of(deaths, "stdout.txt") == "said\n"
    nested = content.startswith(b'{"a":')  # whole, and of no use
    if name.endswith("exit.json") and not nested:
        assert f"{name}: it is broken" in report["unknown"]
    assert (report["host"] is None) == (name == "snapshot.json")


@pytest.mark.parametrize("name", [*SOURCES, "stdout.jsonl"])
def test_a_pipe_a_folder_or_a_link_is_not_waited_for_nor_followed(deaths: Path, launch: Path, name: str) -> None:
    secret = launch.parent / "elsewhere"
    secret.write_text('{"stolen": true}')
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink(secret, path)):
        make(launch / name)
        put_together(deaths, launch)
        assert not any("stolen" in file.read_text() for file in (deaths / "d-s1-1").iterdir())
        (launch / name).rmdir() if (launch / name).is_dir() else (launch / name).unlink()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys([*SNAPSHOT, "cut"], JSON)),
    st.dictionaries(st.text(max_size=10), JSON, max_size=5),
    st.lists(st.dictionaries(st.text(max_size=10), JSON, max_size=3), max_size=5),
)
def test_whatever_the_records_hold_there_is_a_bundle(
    deaths: Path, launch: Path, snapshot: dict[str, Any], exit_: dict[str, Any], events: list[dict[str, Any]]
) -> None:
    write(launch, snapshot=snapshot, exit=exit_)

    put_together(deaths, launch, events=events)

    assert read_bundle(deaths / "d-s1-1") is not None


def test_a_snapshot_of_another_launch_is_not_believed(deaths: Path, launch: Path) -> None:
    write(launch, snapshot=SNAPSHOT | {"launch": "s1-2"})

    report = put_together(deaths, launch)

    assert report["host"] is None
    assert "snapshot.json: it speaks of another launch" in report["unknown"]


def test_what_does_not_fit_goes_in_order_and_the_report_says_so(deaths: Path, launch: Path) -> None:
    samples = [{"at": AT - number, "note": "x" * 700} for number in range(220)]
    write(launch, snapshot=SNAPSHOT | {"samples": samples})
    for name in ("screen", "stderr.log", "stdout.jsonl"):
        (launch / name).write_text("\n".join(f"{name} {number}" for number in range(20_000)))

    report = put_together(deaths, launch)

    sizes = {name: len(text_of(deaths, f"{name}.txt")) for name in ("screen", "stderr", "stdout")}
    assert sizes["stdout"] <= (8 << 10) + 1 and sizes["screen"] > 40 << 10
    assert [line.partition(":")[0] for line in report["cut"]][:4] == ["screen", "stderr.log", "stdout.jsonl", "stdout.txt"]
    assert text_of(deaths, "stdout.txt").endswith("stdout.jsonl 19999\n")
    assert report["survivors"] == SNAPSHOT["survivors"]


@pytest.mark.parametrize("filling", ["x", "世", "\x00", "\udc80", '"', "\\"])
def test_nothing_makes_a_bundle_too_large(deaths: Path, launch: Path, filling: str) -> None:
    long = filling * 3000
    rows = [{f"{filling * 20}{number}": filling * 200 for number in range(10)} for _ in range(6)]
    sections = {name: rows if isinstance(value, list) else rows[0] for name, value in SNAPSHOT.items()}
    write(launch, snapshot=sections | {"launch": None}, exit={str(number): long for number in range(40)})
    for name in ("screen", "stderr.log", "stdout.jsonl"):
        (launch / name).write_text(long * 30, errors="replace")
    evidence = tuple(EvidenceLine(long, long) for _ in range(100))
    death = make_death(at=AT, session=long, intent=make_intent(actor=long, reason=long), evidence=evidence)

    report = put_together(deaths, launch, death, rows * 10, long, [Path(f"/{number}/{'x' * 300}") for number in range(100)])

    assert report["death"]["id"] == "d-s1-1"


def test_a_later_bundle_knows_more_and_loses_nothing(deaths: Path, launch: Path) -> None:
    (launch / "screen").write_text("the screen")
    (launch / "stderr.log").write_text("the words")
    os.utime(launch / "screen", (AT - 4, AT - 4))
    first = put_together(deaths, launch, events=[{"kind": "one"}], activity="a tool")
    assert first["host"] is None

    (launch / "screen").unlink()
    (launch / "stderr.log").unlink()
    write(launch, snapshot=SNAPSHOT)
    second = put_together(deaths, launch)

    assert second["host"] == HOST
    assert text_of(deaths, "screen.txt") == "the screen\n" and text_of(deaths, "stderr.txt") == "the words\n"
    assert second["screen"] == first["screen"]
    assert (second["events"], second["open_tool"]) == ([{"kind": "one"}], "a tool")
    assert second["kept"] == ["screen", "stderr", "open_tool", "events"]

    (launch / "snapshot.json").unlink()
    (launch / "screen").write_text("\n \n")
    third = put_together(deaths, launch)

    assert third["host"] == HOST and third["survivors"] == SNAPSHOT["survivors"]
    assert text_of(deaths, "screen.txt") == "the screen\n"


def test_a_later_screen_and_later_facts_win(deaths: Path, launch: Path) -> None:
    write(launch, snapshot=SNAPSHOT)
    (launch / "screen").write_text("before")
    put_together(deaths, launch)

    write(launch, snapshot=SNAPSHOT | {"survivors": []})
    (launch / "screen").write_text("after")
    report = put_together(deaths, launch)

    assert text_of(deaths, "screen.txt") == "after\n"
    assert report["survivors"] == [] and report["kept"] == []


def test_what_stands_in_an_earlier_bundle_is_redacted_too(deaths: Path, launch: Path) -> None:
    (launch / "screen").write_text(SECRET)
    put_together(deaths, launch, activity=SECRET)
    (launch / "screen").unlink()

    put_together(deaths, launch, redact=hide)

    assert not any(SECRET in file.read_text() for file in (deaths / "d-s1-1").iterdir())


def test_a_damaged_earlier_bundle_is_replaced(deaths: Path, launch: Path) -> None:
    for content in BROKEN:
        put_together(deaths, launch)
        for name in ("report.json", "screen.txt"):
            (deaths / "d-s1-1" / name).write_bytes(content)
        bundle = read_bundle(deaths / "d-s1-1")
        assert bundle is not None and json.dumps(bundle.memory) == "null"

    assert put_together(deaths, launch)["death"]["id"] == "d-s1-1"


@pytest.mark.parametrize("room_bytes", [0, 100, 5000])
@pytest.mark.parametrize("again", [False, True])
def test_a_full_disk_is_an_error_and_leaves_no_half(deaths: Path, launch: Path, room_bytes: int, again: bool) -> None:
    (launch / "stderr.log").write_text("x\n" * 5000)
    deaths.mkdir()
    if again:
        put_together(deaths, launch)
    before = {file.name: file.read_bytes() for file in (deaths / "d-s1-1").iterdir()} if again else {}

    code = [sys.executable, "-c", FULL_DISK, str(deaths), str(launch), str(room_bytes)]
    done = subprocess.run(code, capture_output=True, text=True, timeout=30)

    assert "OSError" in done.stderr
    assert [path.name for path in deaths.iterdir()] == (["d-s1-1"] if again else [])
    assert before == ({file.name: file.read_bytes() for file in (deaths / "d-s1-1").iterdir()} if again else {})


def test_whoever_reads_meanwhile_sees_a_whole_bundle(deaths: Path, launch: Path) -> None:
    (launch / "stderr.log").write_text("x\n" * 5000 + CAUSE)
    put_together(deaths, launch)
    arguments = [sys.executable, "-c", ASSEMBLER, str(deaths), str(launch)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as assembler:
        try:
            assert assembler.stdout is not None
            assembler.stdout.readline()
            for _ in range(300):
                folder = os.open(deaths / "d-s1-1", os.O_RDONLY)  # there at any moment
                os.close(folder)
        finally:
            assembler.kill()

    bundle = read_bundle(deaths / "d-s1-1")
    assert bundle is not None and bundle.stderr_tail[-1] == CAUSE


def two_folders(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "d-s1-1", tmp_path / "d-s1-1.new.tmp"
    for folder in (old, new):
        folder.mkdir()
        (folder / folder.name).write_text("x")
    return old, new


def test_a_bundle_replaces_another_in_one_step(tmp_path: Path) -> None:
    old, new = two_folders(tmp_path)
    after_the_step: list[list[str]] = []

    def exchanged(one: Path, other: Path) -> bool:
        done = exchange(one, other)
        after_the_step.append([path.name for path in old.iterdir()])
        return done

    put_in_place(new, old, exchanged)

    assert after_the_step == [["d-s1-1.new.tmp"]]
    assert [path.name for path in old.iterdir()] == ["d-s1-1.new.tmp"]


def test_a_disk_that_cannot_exchange_folders_gets_the_new_one_too(tmp_path: Path) -> None:
    old, new = two_folders(tmp_path)

    put_in_place(new, old, exchanged=lambda _new, _old: False)

    assert [path.name for path in old.iterdir()] == ["d-s1-1.new.tmp"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d-s1-1", "d-s1-1.new.tmp"]


def test_a_core_is_told_with_where_it_went(launch: Path, tmp_path: Path) -> None:
    pattern = tmp_path / "core_pattern"
    pattern.write_text("|/usr/bin/keep-core %p\n")
    record_exit(str(launch), {"role": "agent", "status": 11 | 0x80, "at": AT})
    record_exit(str(launch), {"role": "server", "status": 0x8B00, "at": AT})

    facts, _ = read_facts(launch, make_death(at=AT), pattern)
    unread, unknown = read_facts(launch, make_death(at=AT), tmp_path / "none")

    assert facts["core"] == {"of": ["agent"], "pattern": "|/usr/bin/keep-core %p"}
    assert unread["core"] == {"of": ["agent"], "pattern": None}
    assert "core_pattern: it is not there" in unknown


def test_the_shims_word_stands_beside_the_others(deaths: Path, launch: Path) -> None:
    (launch / "shim-exit").write_text("137\n")

    assert put_together(deaths, launch)["exits"]["shim"]["status"] == 137


def test_a_shim_that_was_killed_before_it_wrote_anything_is_no_broken_record(deaths: Path, launch: Path) -> None:
    (launch / "shim-exit").touch()

    bundle = put_together(deaths, launch)

    assert "shim" not in bundle["exits"]
    assert not [line for line in bundle["unknown"] if "shim" in line]


def test_ages_are_counted_on_the_clock_of_files_not_of_the_daemon(deaths: Path, launch: Path) -> None:
    """The daemon's clock does not follow a wall that was set; the keeper's record has the wall's time."""
    record_exit(str(launch), {"role": "agent", "status": 0, "at": AT + 3600})
    (launch / "screen").write_text("x")
    os.utime(launch / "screen", (AT + 3590, AT + 3590))

    assert put_together(deaths, launch, make_death(at=AT))["screen"]["age_s"] == 10.0


def test_a_disk_is_full_by_bytes_or_by_inodes() -> None:
    gib = 1 << 30
    assert not is_full(gib, 50 * gib, 1000, 10_000)
    assert is_full(gib, 200 * gib, 1000, 10_000)
    assert is_full(1000, 2000, 1000, 10_000)
    assert is_full(gib, 50 * gib, 5, 10_000)
    assert not is_full(gib, 50 * gib, 0, 0)  # counts no inodes
    assert not is_full(0, 0, 0, 0)  # no disk at all


def test_a_disk_that_hangs_is_unknown_and_waited_for_no_longer(tmp_path: Path) -> None:
    answers = threading.Event()
    hung = tmp_path / "hung"

    def statvfs(path: Path) -> os.statvfs_result:
        if path == hung:
            answers.wait(60)
        return os.statvfs(tmp_path)

    disks, unknown = read_disks([tmp_path, hung], statvfs, deadline_s=0.2)
    answers.set()

    assert [disk["path"] for disk in disks] == [str(tmp_path)]
    assert unknown == [f"disk {hung}: its disk has not answered in 0.2 s"]


def test_where_there_is_no_bundle_none_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    assert read_bundle(tmp_path / "none") is None
    assert read_bundle(tmp_path / "file") is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON | st.dictionaries(st.sampled_from(["events", "kernel", "screen", "memory", "tree", "disk", "survivors"]), JSON))
def test_whatever_lies_in_a_bundle_is_read_as_far_as_it_goes(tmp_path: Path, report: Any) -> None:
    (tmp_path / "report.json").write_text(json.dumps(report))

    bundle = read_bundle(tmp_path)

    assert bundle is not None
    assert json.dumps([bundle.last_events, bundle.memory, bundle.tree], allow_nan=False)
    assert all(isinstance(entry, dict) for entry in (*bundle.last_events, *bundle.survivors, *bundle.disk))
    assert all(isinstance(line, str) for line in bundle.kernel_lines)
