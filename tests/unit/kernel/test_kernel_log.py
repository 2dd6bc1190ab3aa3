"""Only the kernel's own words about this very process count, and a kill is told to one death alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.kernel.test_host import make_v2, write
from vigil.keeper.kills import SETTLE_S, Counter, Kills
from vigil.keeper.protocol import KillFacts
from vigil.kernel.kernel_log import LINE_CHARACTERS, LINES, KernelLog, parse
from vigil.kernel.process import TICKS_A_SECOND

KILL = "Memory cgroup out of memory: Killed process {} (python3) total-vm:119348kB, anon-rss:29952kB, UID:0 pgtables:120kB"
SUMMARY = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/x,task_memcg=/x,task=python3,pid={},uid=0"
FAULT = "python3[{}]: segfault at 0 ip 00007f1 sp 00007ff error 4 in libc.so.6[7f1+155000]"


class Book:
    """A log that a test writes, and the clock by which it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 1000.0
        self.suspended_s = 0.0
        path.touch()
        self.log = KernelLog(str(path), clock=lambda: self.now, awake=lambda: self.now - self.suspended_s)

    def say(self, text: str, stamp_s: float = 1000.0, level: int = 3) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{level},77,{int(stamp_s * 1e6)},-;{text}\n SUBSYSTEM=memory\n")

    def hear(self, text: str, stamp_s: float = 1000.0, level: int = 3) -> None:
        self.say(text, stamp_s, level)
        self.log.drain()


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path / "kmsg")
    yield made
    made.log.close()


@pytest.mark.parametrize("text", [KILL, SUMMARY, FAULT])
def test_a_line_names_a_process_by_its_whole_number(book: Book, text: str) -> None:
    book.hear(text.format(123))

    assert book.log.lines_about(123) == [text.format(123)]
    assert book.log.lines_about(12) == book.log.lines_about(23) == book.log.lines_about(1234) == []


def test_only_the_line_of_a_kill_says_killed(book: Book) -> None:
    book.hear(SUMMARY.format(123))
    book.hear(FAULT.format(124))
    book.hear(KILL.format(125))

    assert [book.log.line_of_kill(pid) is not None for pid in (123, 124, 125, 126)] == [False, False, True, False]


def test_a_line_that_is_older_than_the_process_speaks_of_another(book: Book) -> None:
    book.hear(KILL.format(123), stamp_s=1000.0)

    assert book.log.line_of_kill(123, since_s=999.0)
    assert book.log.line_of_kill(123, since_s=1000.5) is None


def test_an_old_line_that_is_heard_late_speaks_of_another_too(book: Book) -> None:
    book.now = 90000.0
    book.hear(KILL.format(123), stamp_s=1000.0)

    assert book.log.line_of_kill(123, since_s=89999.0) is None


def test_the_logs_clock_stands_still_while_the_machine_is_suspended(book: Book) -> None:
    book.now, book.suspended_s = 90000.0, 80000.0
    book.hear(KILL.format(123), stamp_s=10000.0)

    assert book.log.line_of_kill(123, since_s=89999.0)


def test_the_logs_clock_may_be_minutes_off(book: Book) -> None:
    book.now = 90000.0
    book.hear(KILL.format(123), stamp_s=89800.0)

    assert book.log.line_of_kill(123, since_s=89999.0)


def test_what_others_write_into_the_log_does_not_count(book: Book) -> None:
    book.hear(KILL.format(123), level=8 + 3)

    assert book.log.lines_about(123) == []


def test_what_was_said_before_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text(f"3,1,1,-;{KILL.format(123)}\n")
    log = KernelLog(str(tmp_path / "kmsg"))
    log.drain()
    log.close()

    assert log.lines_about(123) == []


def test_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    log = KernelLog(str(tmp_path / "nothing"))
    log.drain()

    assert not log.readable
    assert log.line_of_kill(123) is None
    assert log.lines_about(123) == []


def test_lines_are_bounded_in_length_and_number(book: Book) -> None:
    for pid in range(1000, 1000 + LINES + 5):
        book.hear(f"process {pid} " + "x" * 1000)

    assert book.log.lines_about(1004) == []
    (line,) = book.log.lines_about(1005)
    assert len(line) == LINE_CHARACTERS


def test_what_is_no_record_is_left_out() -> None:
    for record in (b"", b"\n", b" KEY=value\n", b"x,y,z;text\n", b"3,1,2;no flags\n", b"\xff\xfe\n"):
        assert parse(record, 0.0) == []
    assert [line.text for line in parse(b"6,1,2000000,-,caller=T1;a;b,c\n", 0.0)] == ["a;b,c"]


def test_the_real_log_can_be_read_or_says_that_it_cannot() -> None:
    log = KernelLog()
    log.drain()

    assert log.line_of_kill(os.getpid()) is None
    log.close()


def test_growth_is_told_once() -> None:
    counter = Counter()
    counter.note(5, now=0.0)

    assert [counter.grown(value, now) for value, now in ((6, 10.0), (6, 10.1), (8, 20.0))] == [1, 0, 2]


def test_growth_without_anything_to_compare_with_is_unknown() -> None:
    counter = Counter()

    assert counter.grown(6, now=0.0) is None
    assert counter.grown(None, now=1.0) is None
    assert counter.grown(6, now=2.0) == 0


def test_a_sample_between_the_count_and_the_end_of_the_process_hides_nothing() -> None:
    """The kernel counts first; a process of many gigabytes ends a while later."""
    counter = Counter()
    counter.note(5, now=0.0)
    counter.note(6, now=10.0)

    assert counter.grown(6, now=10.0 + SETTLE_S / 2) == 1
    counter.note(6, now=20.0)
    assert counter.grown(6, now=30.0) == 0


def test_many_samples_in_a_row_do_not_hide_it_either() -> None:
    counter = Counter()
    counter.note(5, now=0.0)
    for tenth in range(15):
        counter.note(6, now=10.0 + tenth / 10)

    assert counter.grown(6, now=11.5) == 1


def make_kills(tmp_path: Path, book: Book, host_kills: int) -> tuple[Kills, str]:
    cgroups = make_v2(tmp_path / "proc", tmp_path / "cg")
    proc = write(tmp_path / "proc", {"vmstat": f"a 1\noom_kill {host_kills}\n"})
    return Kills(book.log, cgroups, proc), str(tmp_path / "cg" / "a.scope")


def test_a_kill_of_the_kernels_is_named_and_counted_and_one_by_hand_just_after_is_not(tmp_path: Path, book: Book) -> None:
    kills, path = make_kills(tmp_path, book, host_kills=3)
    kills.note_host(3)
    kills.note_cgroup(path, 1)
    write(tmp_path, {"proc/vmstat": "a 1\noom_kill 4\n", "cg/a.scope/memory.events": "oom_kill 2\n"})
    book.say(KILL.format(123))

    began = 500 * TICKS_A_SECOND
    assert kills.account(123, began, path, None) == KillFacts(
        named=True, line=KILL.format(123), cgroup=path, cgroup_kills=1, host_kills=1
    )
    assert kills.account(124, began, path, None) == KillFacts(named=False, line=None, cgroup=path, cgroup_kills=0, host_kills=0)


def test_a_cgroup_that_was_never_sampled_is_compared_with_the_birth(tmp_path: Path, book: Book) -> None:
    kills, path = make_kills(tmp_path, book, host_kills=3)

    known = kills.account(5, 0, path, {"cgroup": {"path": path, "oom_kills": 0}})
    assert known.cgroup_kills == 1
    kills, path = make_kills(tmp_path, book, host_kills=3)
    other = kills.account(5, 0, path, {"cgroup": {"path": "/other", "oom_kills": 0}})
    assert (other.cgroup_kills, other.host_kills) == (None, None)


def test_where_nothing_can_be_read_all_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"self/mountinfo": ""})
    cgroups = make_v2(tmp_path / "proc", tmp_path / "cg")
    kills = Kills(KernelLog(str(tmp_path / "nothing")), cgroups, str(tmp_path / "no-proc"))

    assert set(kills.account(5, 0, None, None)) == {None}


def test_cgroups_that_nobody_is_in_any_more_are_forgotten(tmp_path: Path, book: Book) -> None:
    kills, path = make_kills(tmp_path, book, host_kills=0)
    kills.note_cgroup(path, 0)
    kills.sample([])

    assert kills.account(5, 0, path, None).cgroup_kills is None
