"""Numbers, lists and spans of time, as a person reads them."""

from __future__ import annotations

import pytest

from vigil.words import age, few, length, minutes, some, span, times


def test_one_is_not_many() -> None:
    assert [some(number, "launch", "launches") for number in (0, 1, 2)] == ["0 launches", "1 launch", "2 launches"]
    assert [some(number, "problem", none="no") for number in (0, 1, 2)] == ["no problems", "1 problem", "2 problems"]
    assert [times(number) for number in (1, 2)] == ["once", "2 times"]


def test_names_that_are_left_out_are_counted() -> None:
    assert few(["a", "b", "c"], 3) == "a, b, c"
    assert few(["a", "b", "c"], 2) == "a, b and 1 more"
    assert few([], 2) == ""


@pytest.mark.parametrize(("seconds", "words"), [(59, "59 s"), (300, "5 min"), (71 * 3600, "71 h"), (5 * 86400, "5 d")])
def test_spans_are_said_so_that_a_person_can_compare_them(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(119, "119 s"), (120, "2 min"), (7200, "120 min")])
def test_a_wait_is_said_in_minutes_however_long_it_is(seconds: float, words: str) -> None:
    assert minutes(seconds) == words
    assert minutes(seconds, from_s=10_000.0) == f"{seconds} s"


@pytest.mark.parametrize(("seconds", "words"), [(59.94, "59.9 s"), (90, "1.5 min"), (3600, "1.0 h"), (129600, "1.5 d")])
def test_a_length_has_one_decimal_place(seconds: float, words: str) -> None:
    assert length(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(-1, "0s"), (59.9, "59s"), (119, "1m"), (7199, "1h"), (10 * 86400, "10d")])
def test_an_age_in_a_column_is_short_and_never_rounded_up(seconds: float, words: str) -> None:
    assert age(seconds) == words
