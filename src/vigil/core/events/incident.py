"""Events of incidents: conditions, notices, reactions, acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.incident import IncidentKind, Notice, ReactionOutcome


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition for an incident of the host or of Vigil began, or is over."""

    kind: IncidentKind
    holds: bool
    why: str
    at: float


@dataclass(frozen=True, slots=True)
class Notified:
    incident_id: str
    notice: Notice


@dataclass(frozen=True, slots=True)
class Acked:
    incident_id: str
    actor: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A route to people delivered something outside of any incident."""

    route: str


@dataclass(frozen=True, slots=True)
class ReactionEnded:
    incident_id: str
    number: int  # of the reactions to this incident, from 0
    outcome: ReactionOutcome
    why: str = ""


IncidentEvent = Condition | Notified | Acked | Reached | ReactionEnded
