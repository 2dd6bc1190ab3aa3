"""Sizes of the configuration: bytes or words, within a range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.config.sizes import MOST_BYTES, RANGE, read_size


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (0, 0),
        (4097, 4097),
        ("0", 0),
        ("4097", 4097),
        ("0512B", 512),
        ("64K", 64 << 10),
        ("512M", 512 << 20),
        ("512m", 512 << 20),
        ("512MB", 512 << 20),
        ("512MiB", 512 << 20),
        ("2gib", 2 << 30),
        ("3T", 3 << 40),
    ],
)
def test_a_size_is_a_number_of_bytes_or_words_in_multiples_of_1024(value: object, size: int) -> None:
    assert read_size(value) == size
    assert type(read_size(value)) is int


@pytest.mark.parametrize(
    "value",
    [
        *("", "M", "MiB", "512 M", " 512M", "512M\n", "-1", "-1M", "+1M", "1.5G", "1e9", "512iB", "512Mi", "512X", "1P"),
        *("5m30k", "٣M", "512\N{KELVIN SIGN}", "0x10", "1_000", "max", "half"),
        *(512.0, float("nan"), True, None, [5], {}),
    ],
)
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is no size: give bytes, or words like"):
        read_size(value)


def test_a_size_is_within_its_range() -> None:
    for inside in (0, MOST_BYTES, "1024T", str(MOST_BYTES)):
        read_size(inside)
    for outside in (-1, MOST_BYTES + 1, "1025T", str(MOST_BYTES + 1), 10**400, "9" * 5000, f"{'9' * 5000}T"):
        with pytest.raises(ValueError, match=f"is out of range: {RANGE}"):
            read_size(outside)


@given(st.integers(min_value=0, max_value=MOST_BYTES))
def test_a_size_in_words_is_exactly_that_number_of_bytes(size: int) -> None:
    assert read_size(f"{size}") == read_size(f"{size}B") == read_size(size) == size
