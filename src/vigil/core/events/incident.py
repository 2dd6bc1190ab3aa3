"""What becomes of incidents: conditions, notices, reactions, and who knows of them."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.incident import IncidentKind, Notice, ReactionOutcome


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about the host or about Vigil itself that a human should know has begun, or is over."""

    kind: IncidentKind
    holds: bool
    why: str
    at: float


@dataclass(frozen=True, slots=True)
class Notified:
    """What became of a notice."""

    incident_id: str
    notice: Notice


@dataclass(frozen=True, slots=True)
class Acked:
    """A person knows of an incident: nobody needs to be told of it again."""

    incident_id: str
    actor: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A route was tried outside of any incident, and delivers."""

    route: str


@dataclass(frozen=True, slots=True)
class ReactionEnded:
    """What became of a reaction that was carried out."""

    incident_id: str
    number: int  # of the reactions to this incident, from 0
    outcome: ReactionOutcome
    why: str = ""


IncidentEvent = Condition | Notified | Acked | Reached | ReactionEnded
