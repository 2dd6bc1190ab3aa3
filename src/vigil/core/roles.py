"""Roles: what a manifest declares, and what is counted against it; frozen values (DESIGN 4).

A role has replicas; each is a session with a slot of its own. What their deaths cost is counted once, for the role.
"""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model import Hold, Spec


@dataclass(frozen=True, slots=True)
class Health:
    """A sign of life that a role promises: how often, and how many may be missed."""

    heartbeat_s: float
    failures: int = 3


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


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """What was declared of a role. Its environment is kept apart, 0600, and never shown."""

    workspace: str
    team: str
    name: str
    replicas: int
    spec: Spec  # of every replica
    autostart: bool = False  # comes back by itself after a reboot
    after_crash: str = "fresh"  # or resume
    retry_saturated_s: float = 0.0  # a half-open trial after this long; 0 waits for a person
    idle_ttl_s: float = 48 * 3600.0  # 0 is never
    health: Health | None = None
    watchdog: Watchdog = Watchdog()

    @property
    def key(self) -> str:
        """The exact name of the role: what its count is kept under."""
        return f"{self.workspace}/{self.team}/{self.name}"

    def slot(self, index: int) -> str:
        """Return the identity of one replica."""
        return f"{self.key}/{index}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One workspace: what is to be, whole."""

    workspace: str
    roles: tuple[RoleSpec, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """A declared role, and what the deaths of its replicas have cost it so far."""

    spec: RoleSpec
    declared_at: float
    charges: int = 0
    event_at: float | None = None  # the first death of the newest event that was charged
    hold: Hold | None = None  # what that event's replacements wait for

    @property
    def key(self) -> str:
        """The exact name of the role."""
        return self.spec.key
