"""Stalls: how much silence a session may have, and the watchdog's last finding (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vigil.core.model.death import Confidence


@dataclass(frozen=True, slots=True)
class Watchdog:
    """A role's own stall thresholds; None leaves one to the configuration."""

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
    """The stall thresholds of one session; the defaults are INTERFACE's."""

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
    """The configured stall thresholds: for all sessions, and for those of an agent."""

    general: Watchdog = UNSAID
    agents: Mapping[str, Watchdog] = field(default_factory=dict)


DEFAULTS = Thresholds()


@dataclass(frozen=True, slots=True)
class Sign:
    """One entry of the evidence for a stall's verdict or an explanation, as shown."""

    fact: str
    value: str
    source: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Stall:
    """A stall: what the watchdog found of a launch last, and did about it."""

    verdict: str
    confidence: Confidence
    reasons: tuple[str, ...]
    at: float
    since: float  # the finding holds since then without a break
    signs: tuple[Sign, ...] = ()
    ruled_out: tuple[str, ...] = ()
    samples: int = 1  # equal ones in a row, a window apart
    sampled_at: float = 0.0  # the last of them
    independent: int = 0  # sensors that speak for it
    warned_at: float | None = None  # the last warning; None: not worth one, or not yet
    warnings: int = 0
    told: tuple[tuple[str, str], ...] = ()  # the state at the last warning: the next one names what changed
    step: str = ""  # the last remedy that was tried
    stepped_at: float | None = None
    kept: str = ""  # why no remedy is tried
