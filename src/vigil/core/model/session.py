"""A session, as frozen values: what was declared, its launch, what was read of it, how it ended last (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vigil.core.model.conversation import NOTHING_SPENT, Message, Spent, Transcript, Wake
from vigil.core.model.death import Death, Intent, Wall
from vigil.core.model.heartbeat import Pulse
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.progress import NOTHING_COUNTED, SAID_NOTHING, UNHEARD, Doing, Recent, Tally, Trail
from vigil.core.model.reading import Axis, Doubt, Reading
from vigil.core.model.restart import NEVER_RESTARTS, After, Hold, RestartPolicy
from vigil.core.model.stall import Stall


class State(StrEnum):
    """What a session is doing (DESIGN 4.3); each has a way out."""

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
    """What was declared of a session. Its environment is kept apart, 0600, and never shown."""

    command: tuple[str, ...]
    cwd: str
    agent: str = "generic"
    runtime: RuntimeKind = RuntimeKind.TMUX
    restart: RestartPolicy = NEVER_RESTARTS


@dataclass(frozen=True, slots=True)
class Session:
    """An identity with its desired state, and all the core remembers of it."""

    id: str
    name: str
    spec: Spec
    created_at: float
    state: State
    state_since: float
    why: str
    hold: Hold | None = None
    launch: Launch | None = None
    launches: int = 0
    charges: int = 0
    after: After | None = None
    intent: Intent | None = None
    last_death: Death | None = None
    axes: Mapping[Axis, Reading] = field(default_factory=dict)
    last_activity_at: float | None = None
    attached: int = 0
    doubt: Doubt | None = None
    role: str | None = None  # the key of its role, where a manifest declared it
    index: int = 0  # its slot there
    pulse: Pulse | None = None  # where its role promises signs of life
    deaths: tuple[str, ...] = ()  # its last ones that were charged, the newest last
    doing: Doing = UNHEARD  # what is open of its agent's work
    trail: Trail = SAID_NOTHING  # and what it said last
    stall: Stall | None = None  # what was found when it fell silent
    conversation: str = ""  # the one it is in, or was last
    prompted_at: float | None = None  # its agent took a prompt last
    prompted_by: str = ""  # the best source that told of prompts of this launch
    spent: Spent = NOTHING_SPENT
    spent_before: Spent = NOTHING_SPENT  # by launches before this one
    counted: Spent = NOTHING_SPENT  # of this conversation, by agents that say only how much it was so far
    account: str = ""  # whose limits it meets; empty: nobody else's
    wall: Wall | None = None  # that it met
    asked_at: float | None = None  # a person wanted it launched then, whatever stood before it
    read_to: Mapping[str, str] = field(default_factory=dict)  # files of its agent, and how far each was read
    transcript: Transcript | None = None  # what was found of its conversation last
    waking: Wake | None = None  # how its next launch is made, where that was decided already
    quarantined: tuple[str, ...] = ()  # conversations that are not resumed any more, the newest last
    strikes: int = 0  # stalls of its conversation in a row
    queue: tuple[Message, ...] = ()  # what waits to be typed, the oldest first
    recent: tuple[Recent, ...] = ()  # the last words of its launch
    tally: Tally = NOTHING_COUNTED  # what was counted of its launch
    worked: Mapping[str, float] = field(default_factory=dict)  # when each kind of evidence last showed that it works
    archived_at: float | None = None  # it was put away: kept for its record, and not listed
    unended: str = ""  # why its launch could not be ended, while it is stuck for that
