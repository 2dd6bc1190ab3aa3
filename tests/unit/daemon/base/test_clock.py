"""Clocks that are set, hosts that sleep, loops that stand still: time passes as it should, and a gap is said once."""

from __future__ import annotations

from pathlib import Path

import pytest

from vigil.daemon.base.clock import Clock
from vigil.daemon.base.lateness import ALLOWED_S, BEAT_S, Gaps
from vigil.daemon.sense.process_ends import end_of
from vigil.keeper.protocol import ExitWord


class Times:
    """The clocks of a host, turned by hand."""

    def __init__(self) -> None:
        self.boot_s = 5000.0
        self.wall_s = 1_800_000_000.0

    def pass_by(self, seconds: float) -> None:
        self.boot_s += seconds
        self.wall_s += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.boot_s, lambda: self.wall_s)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_is_no_time_that_passed(step_s: float) -> None:
    times = Times()
    clock = times.clock()
    before = clock.now()

    times.wall_s += step_s
    times.pass_by(2.0)

    assert clock.now() == before + 2.0
    assert clock.off_s() == pytest.approx(step_s)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_the_next_daemon_of_the_same_boot_goes_on_with_the_same_time(tmp_path: Path, step_s: float) -> None:
    times = Times()
    first = times.clock()
    first.anchor(tmp_path / "clock.json", "boot-1:7")
    before = first.now()
    times.wall_s += step_s
    times.pass_by(30.0)

    second = times.clock()
    second.anchor(tmp_path / "clock.json", "boot-1:7")

    assert second.now() == before + 30.0


def test_another_boot_takes_the_walls_time(tmp_path: Path) -> None:
    times = Times()
    times.clock().anchor(tmp_path / "clock.json", "boot-1:7")
    times.wall_s += 500.0
    times.boot_s = 10.0

    clock = times.clock()
    clock.anchor(tmp_path / "clock.json", "boot-2:7")

    assert clock.now() == times.wall_s


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"boot": "boot-1:7", "offset": "x"}'])
def test_an_anchor_that_cannot_be_read_is_made_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "clock.json").write_text(text)
    times = Times()
    clock = times.clock()

    clock.anchor(tmp_path / "clock.json", "boot-1:7")

    assert clock.now() == times.wall_s


def test_when_something_ended_is_told_by_the_clock_that_does_not_jump() -> None:
    times = Times()
    clock = times.clock()

    word = ExitWord("s1-1", "agent", 5, 7, 0, "wait", at=times.wall_s + 3600.0, boot_s=times.boot_s - 5.0)

    assert end_of(word, clock).at == clock.now() - 5.0
    assert end_of(word._replace(at=17.0, boot_s=None), clock).at == 17.0


def test_a_beat_that_is_a_little_late_is_no_gap() -> None:
    times = Times()
    gaps = Gaps(times.clock().now)

    times.pass_by(BEAT_S + ALLOWED_S)

    assert gaps.missed_s() == 0.0


def test_a_host_that_slept_is_a_gap_and_said_once() -> None:
    times = Times()
    gaps = Gaps(times.clock().now)

    times.pass_by(3600.0)

    assert gaps.missed_s() == pytest.approx(3600.0 - BEAT_S)
    assert gaps.missed_s() == 0.0


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_is_no_gap(step_s: float) -> None:
    times = Times()
    gaps = Gaps(times.clock().now)

    times.wall_s += step_s

    assert gaps.missed_s() == 0.0
