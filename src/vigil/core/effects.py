"""What the machine asks for: the daemon carries it out, the simulator pretends to (DESIGN 3).

`Persist` of one call to `handle` is durable before any other effect of that call is carried out.
"""

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
    """One line of the append-only event log; the store gives it its sequence number."""

    at: float
    kind: str
    session_id: str | None = None
    session: str | None = None
    launch_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Persist:
    """State changes and their events: one transaction."""

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
    """End all there is of a launch: agent, survivors, server; the outcome is Ended, or Attended where that was asked for."""

    launch: Launch
    grace_s: float
    unless_attended: bool = False
    reap: bool = False  # only if all is still as it was when that was decided; the outcome may be Spared
    guard: Guard | None = None  # which its tmux server compares; None: what lives is spared


@dataclass(frozen=True, slots=True)
class EndStray:
    """End what belongs to no launch that is known, if all is as it was when that was decided; the outcome is StrayEnded."""

    stray: Stray
    grace_s: float
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """Tell who swept what was judged of everything; what is to go is being ended."""

    ticket: str
    verdicts: tuple[ReapVerdict, ...]


@dataclass(frozen=True, slots=True)
class ReapEnded:
    """Tell who swept what became of a launch or a stray."""

    ticket: str
    launch_id: str
    outcome: ReapOutcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """Watch a session no more that was adopted, and leave it as it was found."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Ask an agent to leave what it is doing, unless somebody uses its pane: then the outcome is Attended."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class CloseLaunch:
    """The agent is dead: keep its last screen, end its tmux server; the outcome is Closed."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Say TimerFired at this moment; a later one of the same kind replaces it."""

    session_id: str  # or the key of a role
    kind: TimerKind
    at: float


@dataclass(frozen=True, slots=True)
class Purge:
    """Remove the files of a session that is no more."""

    session: Session


@dataclass(frozen=True, slots=True)
class Look:
    """Read all axes of a launch now, from what cannot lie; the outcome is Observed."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Conclude:
    """The agent is dead: gather how it ended; the outcome is Exited."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Examine:
    """A death was recorded: gather what is left of the launch into its bundle."""

    death: Death
    launch: Launch


@dataclass(frozen=True, slots=True)
class Amend:
    """What an agent said last was read after its death was recorded: it belongs into the bundle too."""

    death: Death  # with those words


@dataclass(frozen=True, slots=True)
class RepairSocket:
    """Have a living tmux server make its socket anew; the next look tells whether it did."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Diagnose:
    """Read what a silent launch and all below it do, over a window; the outcome is Diagnosed."""

    launch: Launch
    window_s: float


@dataclass(frozen=True, slots=True)
class EndChild:
    """End one recorded process below an agent, and not the agent; the outcome is Stepped."""

    launch: Launch
    process: ProcessId
    grace_s: float


@dataclass(frozen=True, slots=True)
class CloseInput:
    """Let a headless agent read the end of its input; the outcome is Stepped."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the escalation clock of an incident; it goes on even if the store does not answer (P6)."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class Answer:
    """Tell whoever asked what was decided; nobody else hears of it."""

    ticket: str
    wake: Wake


@dataclass(frozen=True, slots=True)
class React:
    """Do something about an incident: type a prompt, or run a command; the outcome is ReactionEnded."""

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
