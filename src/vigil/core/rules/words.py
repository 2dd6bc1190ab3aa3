"""Words: numbers and spans of time as a person reads them."""

from __future__ import annotations


def some(number: int, one: str, many: str = "") -> str:
    """Return so many of something in words; the plural has an s unless it is given."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


UNITS = ((4 * 86400.0, 86400.0, "d"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min"))  # from so long on, in so long ones


def span(seconds: float) -> str:
    """Return a span of time in words."""
    for least_s, unit_s, word in UNITS:
        if seconds >= least_s:
            return f"{seconds / unit_s:.0f} {word}"
    return f"{seconds:.0f} s"
