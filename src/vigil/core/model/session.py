"""A session as frozen values: its declaration, launch, readings and last death (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Unpack

from vigil.core.model.conversation import NOTHING_SPENT, Message, Spent, Transcript, Wake
from vigil.core.model.death import Death, Wall
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.replace import replace
from vigil.core.model.restart import NEVER_RESTARTS, After, Hold, RestartPolicy
from vigil.core.model.vitals import UNKNOWN_VITALS, VITALS, Vitals, VitalsChanges


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
    """A declared session. Its environment lies apart, 0600, and is never shown."""

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


def with_vitals(session: Session, **changes: Unpack[VitalsChanges]) -> Session:
    """Return a session with changed vitals."""
    return replace(session, vitals=replace(session.vitals, **changes))


def with_changes(session: Session, **changes: Any) -> Session:
    """Return a session with changed fields, its own and those of its vitals."""
    vitals = {name: changes.pop(name) for name in VITALS & changes.keys()}
    return replace(session, **changes, vitals=replace(session.vitals, **vitals)) if vitals else replace(session, **changes)
