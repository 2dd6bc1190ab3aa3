"""Sizes of a configuration file: bytes, or words like "512M", within one range."""

from __future__ import annotations

import re

from vigil.config.wording import shown

WORDS = re.compile(r"([0-9]+)(?:([KMGT])(?:iB|B)?|B)?", re.ASCII | re.IGNORECASE)  # ASCII: the Kelvin sign is not a K
UNITS_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MOST_BYTES = 1 << 50
RANGE = "0 to 1024T"
LEAST_MEMORY_BYTES = 16 << 20  # an agent that may use less never comes up
LEAST_PIDS, MOST_PIDS = 16, 1 << 22  # the kernel counts threads, and its own most
MOST_WEIGHT = 10_000


def read_size(value: object) -> int:
    """Return a value in bytes; ValueError says what is wrong and what is allowed."""
    size = _bytes(value)
    if not 0 <= size <= MOST_BYTES:
        raise ValueError(f"{shown(value)} is out of range: {RANGE}")
    return int(size)


def _bytes(value: object) -> float:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = WORDS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f'{shown(value)} is no size: give bytes, or words like "512M", "2G"')
    # A float holds every size in range exactly; Python would refuse to read an int of a thousand digits.
    return float(found[1]) * UNITS_BYTES[(found[2] or "").upper()]


def read_memory_max(value: object) -> int:
    """Return a limit of memory in bytes; ValueError says what is wrong and what is allowed."""
    size = read_size(value)
    if size < LEAST_MEMORY_BYTES:
        raise ValueError(f"{shown(value)} is out of range: 16M to 1024T")
    return size


def read_pids_max(value: object) -> int:
    """Return a limit of processes and threads, if it is in range."""
    value = _whole(value)
    if not LEAST_PIDS <= value <= MOST_PIDS:
        raise ValueError(f"{shown(value)} is out of range: {LEAST_PIDS} to {MOST_PIDS}; threads count too")
    return value


def read_weight(value: object) -> int:
    """Return a weight of processor time, if it is in range."""
    value = _whole(value)
    if not 1 <= value <= MOST_WEIGHT:
        raise ValueError(f"{shown(value)} is out of range: 1 to {MOST_WEIGHT}; others have 100")
    return value


def _whole(value: object) -> int:
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not re.fullmatch("[0-9]{1,18}", value):
        raise ValueError(f"{shown(value)} is no whole number")
    return int(value)
