"""Activity: what an agent is doing, in one word (DESIGN 4.1)."""

from __future__ import annotations

from enum import StrEnum


class Activity(StrEnum):
    """What an agent is doing."""

    STARTING = "starting"
    WORKING = "working"
    THINKING = "thinking"
    TOOL = "tool"
    WAITING_HUMAN = "waiting-human"
    WAITING_TIMER = "waiting-timer"
    THROTTLED = "throttled"
    IDLE = "idle"
    UNKNOWN = "unknown"
