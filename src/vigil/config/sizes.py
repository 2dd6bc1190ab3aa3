"""Sizes of a configuration file: bytes, or words like "512M", within one range."""

from __future__ import annotations

import re

from vigil.config.wording import shown

WORDS = re.compile(r"([0-9]+)(?:([KMGT])(?:iB|B)?|B)?", re.ASCII | re.IGNORECASE)  # ASCII: the Kelvin sign is not a K
UNITS_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MOST_BYTES = 1 << 50
RANGE = "0 to 1024T"


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
