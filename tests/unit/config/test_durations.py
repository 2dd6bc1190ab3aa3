"""Durations of the configuration: seconds or words, within a range."""

from __future__ import annotations

import pytest

from vigil.config.durations import AFTER, BACKOFF, IDLE, ORDINARY, Range


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(1, 1), (1.5, 1.5), ("90s", 90), ("90", 90), ("10m", 600), ("2h", 7200), ("1.5h", 5400), ("1d", 86400)],
)
def test_a_duration_is_a_number_of_seconds_or_words(value: object, seconds: float) -> None:
    assert ORDINARY.read(value) == seconds


@pytest.mark.parametrize(
    "value", ["", "s", "10 m", "10M", "--1s", "-", "1e3", "1h30m", "٣s", "5m\n", "nan", True, None, [5], {}]
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is no duration: give seconds, or words like"):
        ORDINARY.read(value)


@pytest.mark.parametrize(
    ("range_", "inside", "outside"),
    [
        (ORDINARY, (1, "24h"), (0, "0s", 0.99, "86401s", "25h", -1, "-1s", "-24h", 10**400, float("inf"), float("nan"))),
        (IDLE, (0, "0", "0s", 1, "30d"), (0.5, "31d", -1, "-1h")),
        (AFTER, (0, "0s", "24h"), (-0.1, "-1s", "1441m")),
        (BACKOFF, (0.01, "24h"), (0, 0.009, "2d")),
    ],
)
def test_a_duration_is_within_its_range(range_: Range, inside: tuple[object, ...], outside: tuple[object, ...]) -> None:
    for value in inside:
        range_.read(value)
    for value in outside:
        with pytest.raises(ValueError, match=f"is out of range: {range_.words}"):
            range_.read(value)
