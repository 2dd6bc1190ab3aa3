"""Counting: a number and what is counted, as a sentence has them."""

from __future__ import annotations


def some(number: int, one: str, many: str = "") -> str:
    """Return so many of something in words; the plural has an s unless it is given."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
