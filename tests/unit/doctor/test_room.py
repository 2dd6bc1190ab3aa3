"""Room, judged: how few descriptors, processes or inodes are a problem, and what that means."""

from __future__ import annotations

import pytest

from vigil.doctor.finding import Level
from vigil.doctor.room import judge
from vigil.kernel.limits import Supply


@pytest.mark.parametrize(
    ("used", "most", "level"),
    [
        (1024, 1024, Level.PROBLEM),
        (1020, 1024, Level.PROBLEM),
        (2000, 1024, Level.PROBLEM),  # somebody lowered it
        (990, 1024, Level.WARNING),
        (30, 64, Level.NOTE),  # few, and most of them free
    ],
)
def test_what_is_short_is_named_with_what_it_means(used: int, most: int, level: Level) -> None:
    (found,) = judge("descriptors of the keeper", Supply(used, most), "it refuses launches", "raise its limit")

    assert found.level is level
    assert f"{max(0, most - used)} left of {most}" in found.says
    assert (level is Level.NOTE) or "it refuses launches" in found.says


def test_enough_is_not_worth_a_line() -> None:
    assert judge("pids of the host", Supply(400, 32768), "", "") == []
