"""Patience: after how much silence what is said or done; a role's own goes before its agent's, that before the general one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from vigil.core.roles import Watchdog

UNSAID = Watchdog()


@dataclass(frozen=True, slots=True)
class Limits:
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


DEFAULTS = Limits()


def limits_of(agent: str, own: Watchdog, configured: Watchdogs) -> Limits:
    """Return what holds of a session: what its role says, else its agent, else the configuration, else the default."""
    said = (own, configured.agents.get(agent, UNSAID), configured.general)
    given = {}
    for name in (entry.name for entry in fields(Limits)):
        found = next((value for one in said if (value := getattr(one, name)) is not None), None)
        if found is not None:
            given[name] = found
    return Limits(**given)
