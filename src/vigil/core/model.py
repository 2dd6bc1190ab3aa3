"""A session, as frozen values: what was declared, its launch, what was read of it, how it ended last (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vigil.core.doing import UNHEARD, Doing
from vigil.core.recent import Recent
from vigil.core.tally import NOTHING, Tally
from vigil.core.trail import SAID_NOTHING, Trail


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


class Cause(StrEnum):
    """Why a launch ended (DESIGN 4.4)."""

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
    KILLED_BY_UNKNOWN = "killed-by-unknown"
    UNOBSERVED = "unobserved"
    HOST_REBOOTED = "host-rebooted"
    LIMIT = "limit"
    AUTH = "auth"


class Confidence(StrEnum):
    """How sure a conclusion is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"


class Axis(StrEnum):
    """What is observed apart and never folded (DESIGN 4.1)."""

    SERVER = "server"
    RUNTIME = "runtime"
    PROCESS = "process"
    ACTIVITY = "activity"


class RestartWhen(StrEnum):
    """After which deaths a session comes back."""

    ALWAYS = "always"
    ON_FAILURE = "on-failure"
    NEVER = "never"


class RuntimeKind(StrEnum):
    """Where a session lives."""

    TMUX = "tmux"
    HEADLESS = "headless"


class Mode(StrEnum):
    """How a session is woken (DESIGN 4.6)."""

    FRESH = "fresh"  # with a new conversation
    RESUME = "resume"  # where its conversation ended
    NOTHING = "nothing"  # there is nothing to do
    REFUSED = "refused"


class Kept(StrEnum):
    """What there is of a conversation to go on with."""

    THERE = "there"
    EMPTY = "empty"  # its transcript holds no word of it
    MISSING = "missing"
    UNABLE = "unable"  # this agent, or this command, cannot go on with one
    UNKNOWN = "unknown"  # nobody could find out


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process for ever: a recycled pid has another start time, another boot has another `boot`."""

    pid: int
    start_ticks: int
    boot: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One reading of one axis: what, from where, how sure."""

    axis: Axis
    value: str
    source: str
    observed_at: float
    conclusive: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What an axis shows now, and since when it shows that."""

    value: str
    source: str
    conclusive: bool
    observed_at: float
    since: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When and how fast a session comes back; defaults are DESIGN 4.4's."""

    when: RestartWhen = RestartWhen.NEVER
    max_restarts: int = 0  # 0 means no limit
    base_s: float = 5.0
    factor: float = 2.0
    cap_s: float = 300.0
    jitter: float = 0.1
    reset_after_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Spec:
    """What was declared of a session. Its environment is kept apart, 0600, and never shown."""

    command: tuple[str, ...]
    cwd: str
    agent: str = "generic"
    runtime: RuntimeKind = RuntimeKind.TMUX
    restart: RestartPolicy = RestartPolicy()


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a session that is wanted is not launched, and until when; None waits for a person."""

    reason: str
    until: float | None


@dataclass(frozen=True, slots=True)
class Host:
    """A tmux session that somebody else started, on a server of theirs; it was taken over, and may be given back."""

    socket: str
    target: str  # by its id on that server
    name: str  # as it was called there


@dataclass(frozen=True, slots=True)
class Launch:
    """One incarnation of a session; its id fences every fact, hook and exit."""

    id: str
    session_id: str
    number: int
    created_at: float
    started_at: float | None = None
    process: ProcessId | None = None
    root: ProcessId | None = None  # the pane's root; for a headless launch the agent leads its own group
    server: ProcessId | None = None
    pane: str | None = None
    names: tuple[str, ...] = ()  # the agent is a process of one of these names, which `process` only runs
    found: ProcessId | None = None  # that agent, once it was seen
    ended_at: float | None = None
    closed: bool = False  # nothing of its runtime is left
    server_told: bool = False  # that its server died is in the event log
    mode: Mode = Mode.FRESH
    woken_for: str = ""  # the cause of that mode
    conversation: str = ""  # that it goes on with
    summarised: bool = False  # so is what it did all in all
    host: Host | None = None  # it was adopted: its server is not ours
    speaks: bool = False  # its kind of agent says what it does, and is set up for that
    reads_input: bool = False  # headless, it reads a pipe that is held open for it

    @property
    def agent(self) -> ProcessId | None:
        """The process whose life is the launch's."""
        return self.found or self.process


@dataclass(frozen=True, slots=True)
class Intent:
    """What we mean to do to a launch, durable before its first signal (P8)."""

    id: str
    session_id: str
    launch_id: str
    verb: str
    cause: Cause
    actor: str
    reason: str
    at: float
    target: ProcessId | None
    until: float
    void_from: float | None = None  # it was given up: what ends later is not its doing


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of what a conclusion rests on."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Oom:
    """What the kernel says of processes it ended for want of memory, just before a death by SIGKILL."""

    named: bool | None = None  # its log names the process; None: nobody may read it
    cgroup: str = ""
    cgroup_kills: int | None = None  # by how much the counter of its cgroup has grown
    host_kills: int | None = None  # and the host's


@dataclass(frozen=True, slots=True)
class Words:
    """What an agent said last, where that is why it ended: a limit, or that nobody let it in."""

    cause: Cause
    text: str
    resets_at: float | None = None


@dataclass(frozen=True, slots=True)
class Wall:
    """What an agent met that no launch gets past: a limit of its account, or that nobody let it in."""

    cause: Cause
    text: str
    at: float  # it was said last
    launch_id: str
    until: float | None  # None: until somebody gets past it
    tries: int = 1  # so often in a row it was met
    note: str = ""  # what is wrong with what was said of its end
    over: bool = False  # its moment has come, and nobody has got past it yet
    tried: bool = False  # somebody has given its agent something to do since
    own: bool = False  # others of its account work on: it is a matter of this session alone


@dataclass(frozen=True, slots=True)
class Exit:
    """All that is known of how one launch ended, gathered before anything is concluded from it."""

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
    rebooted: bool = False
    started: bool = True
    core: bool = False  # the kernel dumped its memory
    oom: Oom | None = None  # asked for only where a SIGKILL ended it
    words: Words | None = None
    result: bool | None = None  # its stream ended with a result; None: its kind has none, or nobody can tell
    full_disk: str = ""  # a place where nothing can be written any more


@dataclass(frozen=True, slots=True)
class Death:
    """The record a launch leaves: exactly one, with its cause and evidence (P3)."""

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
    evidence: tuple[Evidence, ...]
    confidence: Confidence = Confidence.UNKNOWN  # as of one that was stored before this was asked
    activity: str = ""  # what it was doing
    pid: int | None = None  # the agent's; a later process may have the same
    server_pid: int | None = None
    open_turn: bool = False  # it was in the middle of one
    said: tuple[Recent, ...] = ()  # its last words by then


@dataclass(frozen=True, slots=True)
class Wake:
    """What was decided on a session that is to be launched: how, and why so."""

    mode: Mode
    cause: str
    why: str = ""  # in words, where it is refused or nothing could be resumed
    until: float | None = None  # of a refusal


@dataclass(frozen=True, slots=True)
class Transcript:
    """One reading of what there is of a conversation."""

    conversation: str
    kept: Kept
    at: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A prompt that waits to be typed; its text lies in a file of its own, and goes with it."""

    id: str
    at: float
    actor: str
    characters: int
    launch_id: str = ""  # it is being typed into this launch
    typed_at: float | None = None  # since then


class After(StrEnum):
    """What follows once a session that is ending is verified gone."""

    STOP = "stop"
    PARK = "park"
    ARCHIVE = "archive"
    RELAUNCH = "relaunch"
    REMOVE = "remove"


class DoubtKind(StrEnum):
    """Why a session's life is in doubt (DESIGN 4.2)."""

    WEDGED = "wedged"
    BLIND = "blind"
    UNREADABLE = "unreadable"
    CONFIRM = "confirm"
    PANE = "pane"
    ORACLE = "oracle"
    ORPHANED = "orphaned"


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a suspect remembers; it survives a restart of the daemon."""

    kind: DoubtKind
    axis: Axis  # a healthy fact of this axis ends it
    since: float
    attempts: int
    evidence: str  # what was read, without times: when it changes the attempts begin anew, the clock does not
    sampled_at: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has used so far, as far as its agent says."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input
    cost_usd: float = 0.0
    turns: int = 0


NOTHING_SPENT = Spent()


class PulseState(StrEnum):
    """Whether a session gives the signs of life that its role promises."""

    UNKNOWN = "unknown"  # none was due so far
    HEALTHY = "healthy"
    LATE = "late"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class Pulse:
    """The signs of life of one launch."""

    state: PulseState
    due_from: float  # the last sign, or the end of the grace: from here on the next one is waited for


@dataclass(frozen=True, slots=True)
class Sign:
    """One entry of the evidence a verdict rests on, as it is shown."""

    fact: str
    value: str
    source: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Stall:
    """What the watchdog found of a launch last, and what it has done about it."""

    verdict: str
    confidence: Confidence
    reasons: tuple[str, ...]
    at: float
    since: float  # it is found so, without a break
    signs: tuple[Sign, ...] = ()
    ruled_out: tuple[str, ...] = ()
    samples: int = 1  # equal ones in a row, a window apart
    sampled_at: float = 0.0  # the last of them
    independent: int = 0  # sensors that speak for it
    warned_at: float | None = None  # a human was told; None: it is not worth that, or not yet
    warnings: int = 0
    told: tuple[tuple[str, str], ...] = ()  # how things stood at the last warning: what changed is said with the next
    step: str = ""  # the last remedy that was tried
    stepped_at: float | None = None
    kept: str = ""  # why no remedy is tried


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
    tally: Tally = NOTHING  # what was counted of its launch
    worked: Mapping[str, float] = field(default_factory=dict)  # when each kind of evidence last showed that it works
    archived_at: float | None = None  # it was put away: kept for its record, and not listed
