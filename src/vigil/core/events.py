"""What can happen: the values the machine is fed (DESIGN 3)."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.conversation import Message, Transcript
from vigil.core.model.death import Exit, IntentVerb
from vigil.core.model.evidence import Evidence
from vigil.core.model.incident import IncidentKind, Notice, Reaction, ReactionOutcome
from vigil.core.model.launch import ProcessId
from vigil.core.model.reading import Fact
from vigil.core.model.session import Session, Spec
from vigil.core.model.sighting import Glimpse, ReapOutcome, ReapPolicy, Stray
from vigil.core.model.speech import Hook, Said
from vigil.core.model.stall import Watchdogs
from vigil.core.model.team import Manifest
from vigil.core.model.timer import TimerKind


@dataclass(frozen=True, slots=True)
class Declared:
    """Somebody wants a session that did not exist."""

    session_id: str
    name: str
    spec: Spec
    actor: str
    account: str = ""  # whose limits it meets


@dataclass(frozen=True, slots=True)
class Applied:
    """A manifest is to be made so; or only these of its roles, where one that is not in it is taken down."""

    manifest: Manifest
    actor: str
    at_once: bool = False  # what runs an old command is restarted
    only: tuple[str, ...] | None = None  # keys of roles
    accounts: tuple[tuple[str, str], ...] = ()  # whose limits the agents of each role meet


@dataclass(frozen=True, slots=True)
class ShiftAsked:
    """Roles of one team are to be replaced, one after the other, in this order."""

    roles: tuple[str, ...]
    actor: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class ShiftAborted:
    """The shift of these roles is to end where it is."""

    roles: tuple[str, ...]
    actor: str


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """How many more launches the host has memory for, until that is read again; None is plenty."""

    room: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Asked:
    """An operator's command on a session: stop, start, restart, rm, reset, hibernate, wake."""

    verb: IntentVerb
    session_id: str
    actor: str
    reason: str = ""
    mode: str = ""  # of a wake: fresh, resume, or as the table says
    transcript: Transcript | None = None  # what there is of its conversation, read just before
    ticket: str = ""  # whoever waits for the answer has the other half


@dataclass(frozen=True, slots=True)
class MessageQueued:
    """Somebody has a prompt for a session that cannot take it yet; its text is on disk."""

    session_id: str
    message: Message
    transcript: Transcript | None = None  # what there is of its conversation, read just before
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class MessageTyped:
    """A message is about to be typed into a launch; without one, nothing of it was typed after all."""

    session_id: str
    message_id: str
    launch_id: str


@dataclass(frozen=True, slots=True)
class MessageSent:
    """What became of a message: submitted, unsubmitted, refused or unknown."""

    session_id: str
    message_id: str
    outcome: str
    why: str


@dataclass(frozen=True, slots=True)
class Launched:
    """A spawn came to life; these are its processes."""

    launch_id: str
    at: float
    process: ProcessId
    root: ProcessId | None
    server: ProcessId | None
    pane: str | None
    facts: tuple[Fact, ...]
    adopted: bool = False
    names: tuple[str, ...] = ()  # the agent is still to be found, by one of these names
    conversation: str = ""  # that it was given
    account: str = ""  # whose limits it meets, where that was found out
    without: tuple[str, ...] = ()  # what could not be set up for it, a line each
    speaks: bool = False  # this kind of agent says what it does
    reads_input: bool = False  # and reads a pipe that is held open for it


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """A spawn never came to life."""

    launch_id: str
    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The daemon before us ended while it was launching; nothing came to life, and nobody is to blame (P10)."""

    launch_id: str


@dataclass(frozen=True, slots=True)
class Exited:
    """The agent of a launch ended, with all that could be found out about it."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The agent outlived its pane or its server."""

    launch_id: str
    at: float
    what: str  # "server" or "pane"
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Readings of the axes of one launch."""

    launch_id: str
    facts: tuple[Fact, ...]
    attached: int | None = None
    active_at: float | None = None
    socket_lost: bool = False  # its server lives, but nobody can reach it any more
    printed_at: float | None = None  # what its screen shows changed, and not only by a spinner
    delivered_at: float | None = None  # something was typed into it


@dataclass(frozen=True, slots=True)
class Swept:
    """What one pass over all launches found of those that are not plainly well."""

    observed: tuple[Observed, ...]
    looked_at: int


@dataclass(frozen=True, slots=True)
class Found:
    """The agent itself was found below the command that runs it."""

    launch_id: str
    process: ProcessId
    fact: Fact


@dataclass(frozen=True, slots=True)
class RuntimeEnded:
    """The pane of an agent that was dead already has closed, or its headless group has emptied."""

    launch_id: str


@dataclass(frozen=True, slots=True)
class Hooked:
    """What an agent said of itself, in order."""

    launch_id: str
    hooks: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """What an agent said of itself, in order, and how far what it writes was read with that."""

    launch_id: str
    said: tuple[Said, ...]
    source: str  # hook, stream, transcript or screen
    read_to: tuple[tuple[str, str], ...] = ()  # a file, and a position in it


@dataclass(frozen=True, slots=True)
class Weighed:
    """How much memory the processes of a launch have together, or the largest of them had."""

    launch_id: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class WatchdogsSet:
    """What the configuration says of silence, now."""

    watchdogs: Watchdogs


@dataclass(frozen=True, slots=True)
class Measured:
    """How much CPU the agents of launches use, in cores, each by itself: what one pass over all of them read."""

    rates: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """What the sensors read of a silent launch and of all below it."""

    launch_id: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Stepped:
    """What became of a remedy: the process that was meant is verified gone, the input is closed, or it is not."""

    launch_id: str
    step: str
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Time passed in which we could not look: the host slept, or we were not run; nothing is concluded from it."""

    lasted_s: float


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
class Configured:
    """What the configuration says of incidents: which routes there are, and what is to be done about what."""

    routes: tuple[str, ...]
    reactions: tuple[Reaction, ...] = ()


@dataclass(frozen=True, slots=True)
class ReactionEnded:
    """What became of a reaction that was carried out."""

    incident_id: str
    number: int  # of the reactions to this incident, from 0
    outcome: ReactionOutcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of ending a launch: everything of it is verified gone, or it is not."""

    launch_id: str
    ok: bool
    why: str = ""
    transcript: Transcript | None = None  # what there is of its conversation, now that nobody writes it any more


@dataclass(frozen=True, slots=True)
class Attended:
    """A launch was not ended: somebody uses what is left of it."""

    launch_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Sighted:
    """The reaper looked at everything; what it is to do follows from what it saw."""

    glimpses: tuple[Glimpse, ...]
    strays: tuple[Stray, ...]
    policy: ReapPolicy
    actor: str
    ticket: str = ""  # who swept waits for what is judged, and for what becomes of it


@dataclass(frozen=True, slots=True)
class Spared:
    """A launch was not reaped: its tmux server compared, and something was no longer so; or nobody can tell."""

    launch_id: str
    why: str
    unsure: bool = False  # nobody can tell whether it was


@dataclass(frozen=True, slots=True)
class StrayEnded:
    """What became of a stray that was to be ended."""

    stray: Stray
    outcome: ReapOutcome
    ended: int = 0  # of its processes
    left: int = 0
    why: str = ""
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Recovered:
    """Sessions live that the store does not know: they are as their launches say."""

    sessions: tuple[Session, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """A session that was started elsewhere is taken over; it goes on as it is."""

    session: Session
    facts: tuple[Fact, ...]
    actor: str


@dataclass(frozen=True, slots=True)
class Closed:
    """What was left of a dead launch's runtime was ended, and is gone or not."""

    launch_id: str
    facts: tuple[Fact, ...]
    gone: bool = True
    transcript: Transcript | None = None


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A moment the machine asked to be told of."""

    session_id: str  # or the key of a role
    kind: TimerKind


@dataclass(frozen=True, slots=True)
class Resumed:
    """A daemon took over the stored sessions; what was under way goes on."""

    booted: bool = False  # on another boot of the host than the one they were stored on


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A declaration could not be made durable and never was."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that changes nothing belongs into the event log: of the host, of Vigil itself, or of a session."""

    kind: str
    data: tuple[tuple[str, str | int | float | None], ...] = ()
    session_id: str | None = None
    session: str | None = None
    launch_id: str | None = None


Event = (
    Declared
    | Applied
    | ShiftAsked
    | ShiftAborted
    | MemoryRead
    | Asked
    | MessageQueued
    | MessageTyped
    | MessageSent
    | Launched
    | LaunchFailed
    | Interrupted
    | Exited
    | Orphaned
    | Observed
    | Swept
    | Found
    | RuntimeEnded
    | Hooked
    | Heard
    | Weighed
    | WatchdogsSet
    | Measured
    | Diagnosed
    | Stepped
    | Gap
    | Condition
    | Notified
    | Acked
    | Reached
    | Configured
    | ReactionEnded
    | Ended
    | Attended
    | Sighted
    | Spared
    | StrayEnded
    | Recovered
    | Adopted
    | Closed
    | TimerFired
    | Resumed
    | Withdrawn
    | Noted
)
