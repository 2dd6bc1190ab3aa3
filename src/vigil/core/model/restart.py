"""Restarts: when a session comes back, what it waits for, and what follows its end (DESIGN 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RestartWhen(StrEnum):
    ALWAYS = "always"
    ON_FAILURE = "on-failure"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When and how fast a session restarts; defaults are DESIGN 4.4's."""

    when: RestartWhen = RestartWhen.NEVER
    max_restarts: int = 0  # 0 means no limit
    base_s: float = 5.0
    factor: float = 2.0
    cap_s: float = 300.0
    jitter: float = 0.1
    reset_after_s: float = 600.0


NEVER_RESTARTS = RestartPolicy()


class HoldReason(StrEnum):
    BACKOFF = "backoff"
    SATURATED = "saturated"  # it was given up after its last allowed restart
    LIMIT = "limit"
    AUTH = "auth"
    SURVIVOR = "survivor"  # what its last launch left is ended first
    PACE = "pace"  # others are launched before it
    MEMORY = "memory"
    KEEPER = "keeper"  # no keeper answers that could launch it
    COLD_START = "cold-start"  # a new boot of the host left it waiting for a person


@dataclass(frozen=True, slots=True)
class Hold:
    """What a start or restart waits for, and until when; None waits for a person."""

    reason: HoldReason
    until: float | None


class After(StrEnum):
    """What follows a session's verified end: a restart, sleep or another rest."""

    STOP = "stop"
    PARK = "park"
    ARCHIVE = "archive"
    RELAUNCH = "relaunch"
    REMOVE = "remove"
