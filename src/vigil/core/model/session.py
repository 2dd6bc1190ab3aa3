"""A session as frozen values: its declaration, its launch and what is known of it, its last death (DESIGN 4).

The vitals of a launch last as long as it does; the next begins with new ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, TypedDict, Unpack

from vigil.core.model.conversation import NOTHING_SPENT, Message, Spent, Transcript, Wake
from vigil.core.model.death import Death, Intent, Wall
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.limits import UNLIMITED, LaunchLimits
from vigil.core.model.progress import NOTHING_COUNTED, SAID_NOTHING, UNHEARD, Doing, Recent, Tally, Trail
from vigil.core.model.reading import Axis, AxisValue, Doubt, Reading
from vigil.core.model.replace import replace
from vigil.core.model.restart import NEVER_RESTARTS, After, Hold, HoldReason, RestartPolicy
from vigil.core.model.sandbox import Sandbox
from vigil.core.model.speech import Activity
from vigil.core.model.stall import Stall


class State(StrEnum):
    """The state of a session (DESIGN 4.3); each has a way out."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    SUSPECT = "suspect"
    STUCK = "stuck"
    ENDING = "ending"
    CRASHED = "crashed"
    PARKED = "parked"
    STOPPED = "stopped"
    FAILED = "failed"
    SUCCEEDED = "succeeded"


ALIVE = frozenset({State.STARTING, State.RUNNING, State.SUSPECT, State.STUCK, State.ENDING})


@dataclass(frozen=True, slots=True)
class Spec:
    """How a session is declared; its environment lies apart, 0600, and is never shown."""

    command: tuple[str, ...]
    cwd: str
    agent: str = "generic"
    runtime: RuntimeKind = RuntimeKind.TMUX
    restart: RestartPolicy = NEVER_RESTARTS
    limits: LaunchLimits = UNLIMITED
    umask: int | None = None  # the caller's; 022 if it was not told
    sandbox: Sandbox | None = None


class PulseState(StrEnum):
    """The pulse in a session's vitals: whether it gives the promised signs of life."""

    UNKNOWN = "unknown"  # none was due so far
    HEALTHY = "healthy"
    LATE = "late"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class Pulse:
    """A session's pulse, part of its vitals: the signs of life of one launch."""

    state: PulseState
    due_from: float  # the last sign, or the end of the grace: from here on the next one is waited for


@dataclass(frozen=True, slots=True)
class Vitals:
    """A session's vitals: what the core knows of its current launch."""

    axes: Mapping[Axis, Reading] = field(default_factory=dict)
    attached: int = 0
    doubt: Doubt | None = None
    intent: Intent | None = None
    pulse: Pulse | None = None  # where its role promises signs of life
    doing: Doing = UNHEARD  # what is open of its agent's work
    trail: Trail = SAID_NOTHING  # and what it said last
    stall: Stall | None = None  # what was found when it fell silent
    prompted_by: str = ""  # the best source that told of prompts
    spent_before: Spent = NOTHING_SPENT  # by launches before this one
    read_to: Mapping[str, str] = field(default_factory=dict)  # files of its agent, and how far each was read
    recent: tuple[Recent, ...] = ()  # its last words
    tally: Tally = NOTHING_COUNTED

    def shows(self, axis: Axis) -> AxisValue | Activity | None:
        """Return what a session's vitals show on an axis; None before its first reading."""
        return self.axes[axis].value if axis in self.axes else None

    @property
    def warned(self) -> Stall | None:
        """The stall in a session's vitals, if people were warned of it."""
        return self.stall if self.stall is not None and self.stall.warned_at is not None else None


UNKNOWN_VITALS = Vitals()
VITALS = frozenset(one.name for one in fields(Vitals))


class VitalsChanges(TypedDict, total=False):
    """The fields of a session's vitals as keyword arguments; a test holds that they agree."""

    axes: Mapping[Axis, Reading]
    attached: int
    doubt: Doubt | None
    intent: Intent | None
    pulse: Pulse | None
    doing: Doing
    trail: Trail
    stall: Stall | None
    prompted_by: str
    spent_before: Spent
    read_to: Mapping[str, str]
    recent: tuple[Recent, ...]
    tally: Tally


@dataclass(frozen=True, slots=True)
class Session:
    """A session: an identity with its desired state, and all the core remembers of it."""

    id: str
    name: str
    spec: Spec
    created_at: float
    state: State
    state_since: float
    why: str
    hold: Hold | None = None
    launch: Launch | None = None
    vitals: Vitals = UNKNOWN_VITALS  # of its launch
    launches: int = 0
    charges: int = 0
    after: After | None = None
    last_death: Death | None = None
    last_activity_at: float | None = None
    role: str | None = None  # the key of its role, where a manifest declared it
    index: int = 0  # its slot there
    deaths: tuple[str, ...] = ()  # its last ones that were charged, the newest last
    conversation: str = ""  # the one it is in, or was last
    prompted_at: float | None = None  # its agent took a prompt last
    spent: Spent = NOTHING_SPENT
    counted: Spent = NOTHING_SPENT  # of this conversation, by agents that say only how much it was so far
    account: str = ""  # whose limits it meets; empty: nobody else's
    wall: Wall | None = None  # that it met
    asked_at: float | None = None  # a person wanted it launched then, whatever stood before it
    transcript: Transcript | None = None  # what was found of its conversation last
    waking: Wake | None = None  # how its next launch is made, where that was decided already
    quarantined: tuple[str, ...] = ()  # conversations that are not resumed any more, the newest last
    strikes: int = 0  # stalls of its conversation in a row
    queue: tuple[Message, ...] = ()  # what waits to be typed, the oldest first
    worked: Mapping[str, float] = field(default_factory=dict)  # when each kind of evidence last showed that it works
    archived_at: float | None = None  # it was put away: kept for its record, and not listed
    unended: str = ""  # why its launch could not be ended, while it is stuck for that

    @property
    def waits_for(self) -> HoldReason | None:
        """The reason of a session's hold; None if nothing holds it."""
        return None if self.hold is None else self.hold.reason


def unheard(now: float) -> Vitals:
    """Return a session's first vitals, before any sensor has read its launch."""
    reading = Reading(AxisValue.UNKNOWN, "none", False, now, now, "this agent has reported nothing yet")
    return Vitals(axes={Axis.ACTIVITY: reading})


def with_vitals(session: Session, **changes: Unpack[VitalsChanges]) -> Session:
    return replace(session, vitals=replace(session.vitals, **changes))


def with_changes(session: Session, **changes: Any) -> Session:
    """Return a session with changed fields, its own and those of its vitals."""
    vitals = {name: changes.pop(name) for name in VITALS & changes.keys()}
    return replace(session, **changes, vitals=replace(session.vitals, **vitals)) if vitals else replace(session, **changes)
