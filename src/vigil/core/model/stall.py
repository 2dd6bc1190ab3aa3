"""Stalls: how much silence a session may have, and what the watchdog found of it last (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vigil.core.model.death import Confidence


@dataclass(frozen=True, slots=True)
class Watchdog:
    """When silence of a role is worth a word; None is as the configuration says."""

    stall_after_s: float | None = None
    tool_timeout_s: float | None = None
    mcp_tool_timeout_s: float | None = None
    subagent_timeout_s: float | None = None
    approval_reminder_s: float | None = None
    stall_repeat_s: float | None = None
    liveness_timeout_s: float | None = None
    stall_auto_kill: bool | None = None


UNSAID = Watchdog()


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What holds of one session; the defaults are INTERFACE's."""

    stall_after_s: float = 300.0
    tool_timeout_s: float = 600.0
    mcp_tool_timeout_s: float = 900.0
    subagent_timeout_s: float = 900.0
    approval_reminder_s: float = 600.0
    stall_repeat_s: float = 180.0
    liveness_timeout_s: float = 600.0
    stall_auto_kill: bool = False


@dataclass(frozen=True, slots=True)
class Watchdogs:
    """What the configuration says: of all sessions, and of those of an agent."""

    general: Watchdog = UNSAID
    agents: Mapping[str, Watchdog] = field(default_factory=dict)


DEFAULTS = Thresholds()


@dataclass(frozen=True, slots=True)
class Sign:
    """One entry of the evidence a verdict rests on, as it is shown."""

    fact: str
    value: str
    source: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Stall:
    """What the watchdog found of a launch last, and what it has done about it."""

    verdict: str
    confidence: Confidence
    reasons: tuple[str, ...]
    at: float
    since: float  # it is found so, without a break
    signs: tuple[Sign, ...] = ()
    ruled_out: tuple[str, ...] = ()
    samples: int = 1  # equal ones in a row, a window apart
    sampled_at: float = 0.0  # the last of them
    independent: int = 0  # sensors that speak for it
    warned_at: float | None = None  # a human was told; None: it is not worth that, or not yet
    warnings: int = 0
    told: tuple[tuple[str, str], ...] = ()  # how things stood at the last warning: what changed is said with the next
    step: str = ""  # the last remedy that was tried
    stepped_at: float | None = None
    kept: str = ""  # why no remedy is tried
