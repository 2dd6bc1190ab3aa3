"""Durations of a configuration file: seconds, or words like "90s", each within its range."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vigil.config.wording import shown

WORDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
DAY_S = 86400.0


@dataclass(frozen=True)
class Range:
    """The bounds of a duration, and their words."""

    words: str
    low_s: float
    high_s: float
    or_zero: bool = False

    def read(self, value: object) -> float:
        """Return a value in seconds; ValueError says what is wrong and what is allowed."""
        seconds = _seconds(value)
        if not (self.low_s <= seconds <= self.high_s or (self.or_zero and seconds == 0)):
            raise ValueError(f"{shown(value)} is out of range: {self.words}")
        return float(seconds)


ORDINARY = Range("1 s to 24 h", 1, DAY_S)
IDLE = Range("1 s to 30 days, or 0 for never", 1, 30 * DAY_S, or_zero=True)
AGE = Range("1 s to 10 years, or 0 for no limit", 1, 3653 * DAY_S, or_zero=True)
AFTER = Range("0 s to 24 h", 0, DAY_S)
DEADLINE = Range("1 s to 10 min", 1, 600)
BACKOFF = Range("0.01 s to 24 h", 0.01, DAY_S)


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value  # unconverted: a number of a thousand digits does not fit a float, and is out of every range
    found = WORDS.fullmatch(value.removeprefix("-")) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f'{shown(value)} is no duration: give seconds, or words like "90s", "10m", "2h"')
    seconds = float(found[1]) * UNITS_S[found[2]]
    return -seconds if str(value).startswith("-") else seconds  # out of every range, which the message says
