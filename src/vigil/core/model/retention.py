"""Retention: how much of the past Vigil keeps, by count and by age; what is open or needed always stays."""

from __future__ import annotations

from dataclasses import dataclass

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How many of the newest records the past has, and how old they get; an age of 0 is no limit."""

    events: int = 200_000
    deaths: int = 20_000  # their records; as many rows of ended launches, and of intents
    incidents: int = 5_000
    age_s: float = 90 * DAY_S
    bundles: int = 500
    bundle_age_s: float = 30 * DAY_S
    bundle_bytes: int = 64 << 20
