"""Heartbeats: the signs of life that a role promises."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PulseState(StrEnum):
    """Whether a session gives the signs of life that its role promises."""

    UNKNOWN = "unknown"  # none was due so far
    HEALTHY = "healthy"
    LATE = "late"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class Pulse:
    """The signs of life of one launch."""

    state: PulseState
    due_from: float  # the last sign, or the end of the grace: from here on the next one is waited for
