"""Effects: what the machine asks for; `Persist` is durable before the daemon carries out the others (DESIGN 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vigil.core.model.conversation import Wake
from vigil.core.model.death import Death, Intent
from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.session import Session
from vigil.core.model.sighting import Guard, ReapOutcome, ReapVerdict, Stray
from vigil.core.model.team import Role


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line that an effect adds to the append-only event log; the store numbers it."""

    at: float
    kind: str
    session_id: str | None = None
    session: str | None = None
    launch_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Persist:
    """Ask the store to write changed state and its log lines, in one transaction."""

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
    """Ask for a launch to come to life; the outcome is Launched or LaunchFailed."""

    session: Session
    launch: Launch


@dataclass(frozen=True, slots=True)
class EndLaunch:
    """Ask for the end of all of a launch; the outcome is Ended or Attended."""

    launch: Launch
    grace_s: float
    unless_attended: bool = False
    reap: bool = False  # only if nothing changed since the verdict; the outcome may be Spared
    guard: Guard | None = None  # its tmux server compares this; None spares what lives


@dataclass(frozen=True, slots=True)
class EndStray:
    """Ask for a stray's end if nothing changed since its verdict; the outcome is StrayEnded."""

    stray: Stray
    grace_s: float
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """Ask the daemon to tell a waiting sweep all its verdicts."""

    ticket: str
    verdicts: tuple[ReapVerdict, ...]


@dataclass(frozen=True, slots=True)
class ReapEnded:
    """Ask the daemon to tell a waiting sweep what became of a launch or stray."""

    ticket: str
    launch_id: str
    outcome: ReapOutcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """Ask the daemon to stop watching an adopted session and leave it as it was."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Ask an agent to leave its work; Attended tells that a person uses it."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class CloseLaunch:
    """Ask for a dead agent's last screen and its server's end; the outcome is Closed."""

    launch: Launch


class TimerKind(StrEnum):
    """What a timer is for that the machine asks for by SetTimer."""

    HOLD = "hold"  # a wait is over
    STABLE = "stable"  # a session has been up long enough to lose its charges
    LOOK = "look"  # a doubt is looked at again
    INCIDENTS = "incidents"  # an incident may be settled
    PULSE = "pulse"  # a sign of life is due
    DRAIN = "drain"  # a replica that is replaced has had its grace
    SILENCE = "silence"  # the watchdog looks at a session
    PEOPLE = "people"  # a remedy waits for a person to leave
    MEMORY = "memory"  # a launch has waited long for memory
    WALL = "wall"  # a limit has ended
    SUMMARY = "summary"  # a launch that is over is summed up
    REACT = "react"  # a reaction to an incident is due
    SHIFT = "shift"  # of a role: its shift goes on
    STEADY = "steady"  # of a role: it may lose its charges


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Send TimerFired at this moment; a later timer of the same kind replaces it."""

    session_id: str  # or the key of a role
    kind: TimerKind
    at: float


@dataclass(frozen=True, slots=True)
class Purge:
    """Ask the daemon to remove the files of a removed session."""

    session: Session


@dataclass(frozen=True, slots=True)
class Look:
    """Ask for a sure reading of all axes of a launch; the outcome is Observed."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Conclude:
    """Ask how a dead agent ended; the outcome is Exited."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Examine:
    """Ask the daemon to gather what is left of a dead launch into its bundle."""

    death: Death
    launch: Launch


@dataclass(frozen=True, slots=True)
class Amend:
    """Ask the daemon to add late words to the bundle of a recorded death."""

    death: Death  # with those words


@dataclass(frozen=True, slots=True)
class RepairSocket:
    """Have a living tmux server make its socket anew; Look shows whether it did."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Diagnose:
    """Ask what a silent launch does, over a window; the outcome is Diagnosed."""

    launch: Launch
    window_s: float


@dataclass(frozen=True, slots=True)
class EndChild:
    """Ask for the end of one process below an agent; the outcome is Stepped."""

    launch: Launch
    process: ProcessId
    grace_s: float


@dataclass(frozen=True, slots=True)
class CloseInput:
    """Ask to close the input of a headless agent; the outcome is Stepped."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Tell:
    """Ask that the escalation clock hears of an incident, even if the store hangs (P6)."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class Answer:
    """Ask the daemon to tell a waiting caller how its wake was decided."""

    ticket: str
    wake: Wake


@dataclass(frozen=True, slots=True)
class React:
    """Ask for a prompt or command for an incident; the outcome is ReactionEnded."""

    incident: Incident
    number: int
    do: str
    text: str = ""
    command: tuple[str, ...] = ()


OfLaunch = Spawn | EndLaunch | Release | Interrupt | CloseLaunch | Look | RepairSocket | Diagnose | EndChild | CloseInput
OfDeath = Conclude | Examine | Amend
Reply = Judged | ReapEnded | Answer
Effect = Persist | OfLaunch | OfDeath | EndStray | SetTimer | Purge | Tell | React | Reply
