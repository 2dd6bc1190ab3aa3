"""Words: numbers, lists and spans of time as a person reads them. Pure: the core uses it too."""

from __future__ import annotations

from collections.abc import Sequence

DAY_S, HOUR_S, MINUTE_S = 86400.0, 3600.0, 60.0
Units = tuple[tuple[float, float, str], ...]  # from this length on, in this unit, called so
SPANS: Units = ((4 * DAY_S, DAY_S, "d"), (2 * HOUR_S, HOUR_S, "h"), (2 * MINUTE_S, MINUTE_S, "min"))
LENGTHS: Units = ((DAY_S, DAY_S, "d"), (HOUR_S, HOUR_S, "h"), (MINUTE_S, MINUTE_S, "min"))


def some(number: int, one: str, many: str = "", none: str = "0") -> str:
    """Return a count in words; the plural has an s unless given."""
    return f"{number or none} {one if number == 1 else many or f'{one}s'}"


def times(number: int) -> str:
    """Return how often something happened."""
    return "once" if number == 1 else f"{number} times"


def few(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def span(seconds: float) -> str:
    """Return a span of time in the unit in which a person compares it."""
    return _in_units(seconds, SPANS, 0)


def minutes(seconds: float, from_s: float = 2 * MINUTE_S) -> str:
    """Return a span in seconds, from so long on in minutes."""
    return _in_units(seconds, ((from_s, MINUTE_S, "min"),), 0)


def length(seconds: float) -> str:
    """Return a span of time to one decimal place."""
    return _in_units(seconds, LENGTHS, 1)


def _in_units(seconds: float, units: Units, digits: int) -> str:
    for least_s, unit_s, word in units:
        if seconds >= least_s:
            return f"{seconds / unit_s:.{digits}f} {word}"
    return f"{seconds:.{digits}f} s"


def age(seconds: float) -> str:
    """Return a span of time in at most four characters, for a column."""
    for unit_s, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m")):
        if seconds >= unit_s:
            return f"{int(seconds // unit_s)}{unit}"
    return f"{int(max(0.0, seconds))}s"
