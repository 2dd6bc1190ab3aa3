"""Limits of a launch: what its cgroup lets it use; None is no limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """The limits of a launch: what all its processes may use together."""

    memory_max: int | None = None  # bytes
    pids_max: int | None = None  # threads count too
    cpu_weight: int | None = None  # its share when cores are short; others have 100


UNLIMITED = LaunchLimits()
