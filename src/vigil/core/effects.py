"""Effects: what the machine asks for; `Persist` is durable before the daemon carries out the others (DESIGN 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vigil.core.model.conversation import Wake
from vigil.core.model.death import Death, Intent
from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.session import Session
from vigil.core.model.sighting import Guard, ReapOutcome, ReapVerdict, Stray
from vigil.core.model.team import Role
from vigil.core.model.timer import TimerKind


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the append-only event log; the store numbers it."""

    at: float
    kind: str
    session_id: str | None = None
    session: str | None = None
    launch_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Persist:
    """State changes and their events, in one transaction."""

    sessions: tuple[Session, ...] = ()
    launches: tuple[Launch, ...] = ()
    removed: tuple[str, ...] = ()  # session ids
    deaths: tuple[Death, ...] = ()
    intents: tuple[Intent, ...] = ()
    incidents: tuple[Incident, ...] = ()
    log: tuple[LogEntry, ...] = ()
    roles: tuple[Role, ...] = ()
    removed_roles: tuple[str, ...] = ()  # their keys


@dataclass(frozen=True, slots=True)
class Spawn:
    """Bring a launch to life; the outcome is Launched or LaunchFailed."""

    session: Session
    launch: Launch


@dataclass(frozen=True, slots=True)
class EndLaunch:
    """End all there is of a launch: agent, survivors, server; the outcome is Ended or Attended."""

    launch: Launch
    grace_s: float
    unless_attended: bool = False
    reap: bool = False  # only if nothing changed since the verdict; the outcome may be Spared
    guard: Guard | None = None  # its tmux server compares this; None spares what lives


@dataclass(frozen=True, slots=True)
class EndStray:
    """End processes of no known launch, if nothing changed since the verdict; the outcome is StrayEnded."""

    stray: Stray
    grace_s: float
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """Tell the sweep all verdicts; what is to go is being ended."""

    ticket: str
    verdicts: tuple[ReapVerdict, ...]


@dataclass(frozen=True, slots=True)
class ReapEnded:
    """Tell the sweep what became of a launch or a stray."""

    ticket: str
    launch_id: str
    outcome: ReapOutcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """Stop watching an adopted session, and leave it as it was found."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Ask an agent to leave its work; if a person uses its pane, the outcome is Attended."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class CloseLaunch:
    """Keep a dead agent's last screen and end its tmux server; the outcome is Closed."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Send TimerFired at this moment; a later timer of the same kind replaces it."""

    session_id: str  # or the key of a role
    kind: TimerKind
    at: float


@dataclass(frozen=True, slots=True)
class Purge:
    """Remove the files of a removed session."""

    session: Session


@dataclass(frozen=True, slots=True)
class Look:
    """Read all axes of a launch now, from sources that cannot lie; the outcome is Observed."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Conclude:
    """Gather how a dead agent ended; the outcome is Exited."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Examine:
    """Gather what is left of a dead launch into its bundle."""

    death: Death
    launch: Launch


@dataclass(frozen=True, slots=True)
class Amend:
    """Add words to a death's bundle that were read only after it was recorded."""

    death: Death  # with those words


@dataclass(frozen=True, slots=True)
class RepairSocket:
    """Have a living tmux server make its socket anew; the next look shows whether it did."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Diagnose:
    """Read what a silent launch and all below it do, over a window; the outcome is Diagnosed."""

    launch: Launch
    window_s: float


@dataclass(frozen=True, slots=True)
class EndChild:
    """End one recorded process below an agent, not the agent; the outcome is Stepped."""

    launch: Launch
    process: ProcessId
    grace_s: float


@dataclass(frozen=True, slots=True)
class CloseInput:
    """Close the input of a headless agent; the outcome is Stepped."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the escalation clock of an incident; it works even if the store does not answer (P6)."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class Answer:
    """Tell the caller what was decided."""

    ticket: str
    wake: Wake


@dataclass(frozen=True, slots=True)
class React:
    """Type a prompt or run a command for an incident; the outcome is ReactionEnded."""

    incident: Incident
    number: int
    do: str
    text: str = ""
    command: tuple[str, ...] = ()


Effect = (
    Persist
    | Spawn
    | EndLaunch
    | EndStray
    | Judged
    | ReapEnded
    | Release
    | Interrupt
    | CloseLaunch
    | SetTimer
    | Purge
    | Look
    | Conclude
    | Examine
    | Amend
    | RepairSocket
    | Diagnose
    | EndChild
    | CloseInput
    | Tell
    | Answer
    | React
)
