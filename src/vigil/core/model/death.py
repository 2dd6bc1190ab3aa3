"""Death: why and how a launch ended, which intent meant it to, and its record (DESIGN 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.launch import ProcessId
from vigil.core.model.progress import Recent
from vigil.core.model.sighting import ReapClass


class Cause(StrEnum):
    FINISHED = "finished"
    OPERATOR = "operator"
    POLICY = "policy"
    UNHEALTHY = "unhealthy"
    STALLED = "stalled"
    LAUNCH_FAILED = "launch-failed"
    EARLY_EXIT = "early-exit"
    CRASH = "crash"
    OOM = "oom"
    SERVER_DIED = "server-died"
    PANE_CLOSED = "pane-closed"
    KILLED_BY_UNKNOWN = "killed-by-unknown"
    UNOBSERVED = "unobserved"
    HOST_REBOOTED = "host-rebooted"
    LIMIT = "limit"
    AUTH = "auth"


class Confidence(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"


class IntentVerb(StrEnum):
    """A verb of operators or policy; one that means a launch's death becomes an intent."""

    STOP = "stop"
    START = "start"
    RESTART = "restart"
    RM = "rm"
    RESET = "reset"
    HIBERNATE = "hibernate"
    WAKE = "wake"
    ARCHIVE = "archive"
    RELEASE = "release"
    SHIFT = "shift"
    UNHEALTHY = "unhealthy"
    REAP = "reap"
    REPLACE = "replace"  # of an agent that outlived its pane or its server
    STALL = "stall"  # the last remedy: the launch is ended
    STALL_CHILD = "stall-end-child"
    STALL_INTERRUPT = "stall-interrupt"
    STALL_STDIN = "stall-close-stdin"


@dataclass(frozen=True, slots=True)
class Intent:
    """What Vigil means to do to a launch, durable first; it explains its death (P8)."""

    id: str
    session_id: str
    launch_id: str
    verb: IntentVerb
    cause: Cause
    actor: str
    reason: str
    at: float
    target: ProcessId | None
    until: float
    void_from: float | None = None  # it was given up: what ends later is not its doing
    kind: ReapClass | None = None  # of a reap: what its session was to the reaper
    why: str = ""  # of a reap: the evidence that decided; the reason says both
    ticket: str = ""  # of a reap: the sweep that waits for its outcome


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Oom:
    """What the kernel says of kills for want of memory before a death by SIGKILL."""

    named: bool | None = None  # its log names the process; None: Vigil may not read it
    cgroup: str = ""
    cgroup_kills: int | None = None  # by how much the counter of its cgroup has grown
    host_kills: int | None = None  # and the host's
    elsewhere: int | None = None  # of the host's, those in other launches' cgroups; None: not counted


@dataclass(frozen=True, slots=True)
class Words:
    """A dying agent's last words, if they say why: a limit or a failed login."""

    cause: Cause
    text: str
    resets_at: float | None = None


@dataclass(frozen=True, slots=True)
class Wall:
    """What no launch gets past, and may die of: an account's limit, a failed login."""

    cause: Cause
    text: str
    at: float  # it was said last
    launch_id: str
    until: float | None  # None: until an agent gets past it
    tries: int = 1  # so often in a row it was met
    note: str = ""  # what is wrong with what was said of its end
    over: bool = False  # its time has come, but no agent got past it yet
    tried: bool = False  # its agent got new work since
    own: bool = False  # others of its account work on: only this session waits


@dataclass(frozen=True, slots=True)
class Exit:
    """All that sensors gathered of how one launch ended, before its death has a cause."""

    launch_id: str
    at: float
    observed_by: str  # keeper, daemon, shim, start-up
    exit_code: int | None = None
    signal: int | None = None
    ambiguous: bool = False  # only `$?` is known: signal n or exit 128+n
    status_source: str = ""
    server_ended: bool = False
    server_exit_code: int | None = None
    server_signal: int | None = None
    root_signal: int | None = None  # the pane's root ended first, by this signal
    pane_closed: bool = False  # the root's end was just before the agent's, and not the agent's own
    rebooted: bool = False
    started: bool = True
    ours: bool = False  # it never began because Vigil itself failed
    core: bool = False  # the kernel dumped its memory
    oom: Oom | None = None  # asked for only where a SIGKILL ended it
    words: Words | None = None
    result: bool | None = None  # its stream ended with a result; None: its kind has none, or it is unknown
    full_disk: str = ""  # a place where nothing can be written any more


@dataclass(frozen=True, slots=True)
class Death:
    """The one record of a launch's death, with cause and evidence (P3)."""

    id: str
    session_id: str
    session: str
    launch_id: str
    at: float
    observed_by: str
    cause: Cause
    exit_code: int | None
    signal: int | None
    charged: bool
    intent: Intent | None
    uptime_s: float | None
    evidence: tuple[EvidenceLine, ...]
    confidence: Confidence = Confidence.UNKNOWN  # as of one that was stored before this was asked
    activity: str = ""  # what it was doing
    pid: int | None = None  # the agent's; a later process may have the same
    server_pid: int | None = None
    open_turn: bool = False  # it was in the middle of one
    said: tuple[Recent, ...] = ()  # its last words by then
