"""Escalation: which notices of an incident are due, when, and to whom (the ladder)."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model import Incident, IncidentKind, Severity


@dataclass(frozen=True, slots=True)
class Step:
    """One rung of a ladder: a route, how long an incident must be open and unacknowledged, and how often it is said again."""

    route: str
    after_s: float = 0.0
    repeat_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps for incidents of a severity, a kind, or both; None matches all."""

    steps: tuple[Step, ...]
    severity: Severity | None = None
    kind: IncidentKind | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A notice whose moment has come; its id is the same whenever it is computed again."""

    notice_id: str
    route: str
    event: str  # opened, reminder or resolved
    incident: Incident
