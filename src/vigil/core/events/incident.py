"""Events of incidents: conditions, notices, reactions, acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.incident import IncidentKind, Notice, ReactionOutcome


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the host or of Vigil itself has begun, or is over."""

    kind: IncidentKind
    holds: bool
    why: str
    at: float


@dataclass(frozen=True, slots=True)
class Notified:
    """A notice has a new state."""

    incident_id: str
    notice: Notice


@dataclass(frozen=True, slots=True)
class Acked:
    """A person acknowledged an incident."""

    incident_id: str
    actor: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A route delivered something outside of any incident."""

    route: str


@dataclass(frozen=True, slots=True)
class ReactionEnded:
    """A reaction ended, with its outcome."""

    incident_id: str
    number: int  # of the reactions to this incident, from 0
    outcome: ReactionOutcome
    why: str = ""


IncidentEvent = Condition | Notified | Acked | Reached | ReactionEnded
