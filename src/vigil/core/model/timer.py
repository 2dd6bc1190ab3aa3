"""Timers: moments the machine asks for; a later timer of the same kind replaces the earlier."""

from __future__ import annotations

from enum import StrEnum


class TimerKind(StrEnum):
    """What a moment is for."""

    HOLD = "hold"  # a wait is over
    STABLE = "stable"  # a session has been up long enough to lose its charges
    LOOK = "look"  # a doubt is looked at again
    INCIDENTS = "incidents"  # an incident may be settled
    PULSE = "pulse"  # a sign of life is due
    DRAIN = "drain"  # a replica that is replaced has had its grace
    SILENCE = "silence"  # the watchdog looks at a session
    PEOPLE = "people"  # a remedy waits for a person to leave
    MEMORY = "memory"  # a launch has waited long for memory
    WALL = "wall"  # a limit has ended
    SUMMARY = "summary"  # a launch that is over is summed up
    REACT = "react"  # a reaction to an incident is due
    SHIFT = "shift"  # of a role: its shift goes on
    STEADY = "steady"  # of a role: it may lose its charges
