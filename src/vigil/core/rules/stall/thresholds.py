"""Thresholds: how much silence a session may have, by its role, else its agent, else the configuration."""

from __future__ import annotations

from dataclasses import fields

from vigil.core.model.stall import UNSAID, Thresholds, Watchdog, Watchdogs


def thresholds_of(agent: str, own: Watchdog, configured: Watchdogs) -> Thresholds:
    """Return a session's thresholds: from its role, its agent, the configuration or the defaults."""
    said = (own, configured.agents.get(agent, UNSAID), configured.general)
    given = {}
    for name in (entry.name for entry in fields(Thresholds)):
        found = next((value for one in said if (value := getattr(one, name)) is not None), None)
        if found is not None:
            given[name] = found
    return Thresholds(**given)
