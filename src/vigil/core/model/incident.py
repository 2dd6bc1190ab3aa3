"""An incident, as a frozen value: what a human should know, whom it was told, and what was done about it (P12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.death import EvidenceLine


class IncidentKind(StrEnum):
    """What a human should know of."""

    STUCK = "stuck"
    NEEDS_INPUT = "needs-input"
    STALLED = "stalled"
    SATURATED = "saturated"
    SERVER_DIED = "server-died"
    MASS_DEATH = "mass-death"
    TAINTED = "tainted"
    LIMIT = "limit"
    AUTH = "auth"
    UNHEALTHY_PROBER = "unhealthy-prober"
    LATE_DAEMON = "late-daemon"
    KEEPER_LOST = "keeper-lost"
    LOW_MEMORY = "low-memory"
    STORE_LOST = "store-lost"
    UNDELIVERED = "undelivered"


class Severity(StrEnum):
    """How soon a human should know."""

    URGENT = "urgent"
    ACTION = "action"
    WARNING = "warning"


class NoticeState(StrEnum):
    """What became of a notice so far."""

    SENDING = "sending"
    SENT = "sent"
    RETRYING = "retrying"
    FAILED = "failed"
    UNKNOWN = "unknown"  # it may have arrived
    CANCELLED = "cancelled"


class NoticeEvent(StrEnum):
    """What a notice says."""

    OPENED = "opened"
    REMINDER = "reminder"
    AGAIN = "again"
    ESCALATED = "escalated"
    RESOLVED = "resolved"


class ReactionOutcome(StrEnum):
    """What became of a reaction."""

    BEGUN = "begun"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"  # the daemon ended meanwhile


@dataclass(frozen=True, slots=True)
class Rung:
    """Which repeat of which step of a ladder a notice is."""

    step: int
    number: int  # 0 is the first
    urgent: bool = False  # of the ladder that began anew when its incident became urgent

    def is_same_step(self, other: Rung | None) -> bool:
        """Say whether another one is of the same step of the same ladder."""
        return other is not None and (self.step, self.urgent) == (other.step, other.urgent)


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice of an incident to one route, and what became of it; its id is the same when it is sent again."""

    id: str
    route: str
    state: NoticeState
    at: float
    why: str = ""
    event: NoticeEvent = NoticeEvent.OPENED  # what it says
    attempts: int = 1
    unsure: int = 0  # attempts that may have arrived all the same
    retry_at: float | None = None
    took: tuple[str, ...] = ()  # where its route reaches several at once, those that took it: they are not told again
    revived: bool = False  # it was given up, and is tried once more because its route delivers again
    rung: Rung | None = None  # None: it was decided beside the ladder


@dataclass(frozen=True, slots=True)
class Reacted:
    """One reaction to an incident, and what became of it."""

    at: float
    do: str
    outcome: ReactionOutcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """What a human should know: opens once, resolves once (P12)."""

    id: str
    key: str  # a session and a kind, or the host and a kind: one is open of each at most
    kind: IncidentKind
    severity: Severity
    session_id: str | None
    session: str | None
    opened_at: float
    why: str
    count: int = 1
    acked_at: float | None = None
    resolved_at: float | None = None
    resolution: str = ""
    notices: tuple[Notice, ...] = ()
    deaths: tuple[str, ...] = ()  # the last ones that led to it, the newest last
    evidence: tuple[EvidenceLine, ...] = ()  # what was known of its session when it opened
    acked_by: str = ""
    about: tuple[str, ...] = ()  # the routes that cannot be reached, where it is that
    over_at: float | None = None  # from when on it is over for good: what comes back before is the same one
    reopened: int = 0  # how often it came back so
    reopened_at: float | None = None
    again_at: float | None = None  # it came back, and is said again if it lasts until then
    flaps: int = 0  # how many of the same there were before it, each soon after the last
    escalated_at: float | None = None  # what was to be done about it was done in vain: it is urgent since
    reactions: tuple[Reacted, ...] = ()
    spent: int = 0  # reactions to those of the same before it
    reminders: int = 0  # so often it was decided to tell of it again, beside its ladder
    hushed: bool = False  # its session was removed: nobody is told of it any more, not even that it is over


ALWAYS = frozenset({Severity.URGENT})  # these pass, whatever a rule says


@dataclass(frozen=True, slots=True)
class Quiet:
    """From one time of the day to another, for all or for one team; what passes is told all the same."""

    from_s: float  # after midnight
    to_s: float  # the same as `from_s`: never
    passes: frozenset[Severity] = ALWAYS
    offset_s: Callable[[float], float] = lambda _at: 0.0  # of the wall's clock from UTC, at a moment
    team: str | None = None


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One rung of a ladder: a route, how long an incident must be open and unacknowledged, and how often it is said again."""

    route: str
    after_s: float = 0.0
    repeat_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps for incidents of a severity, a kind, a team, or some of these; None matches all."""

    steps: tuple[LadderStep, ...]
    severity: Severity | None = None
    kind: IncidentKind | None = None
    team: str | None = None


@dataclass(frozen=True, slots=True)
class Telling:
    """How people are told: by which steps, when not, and what routes there are."""

    ladders: tuple[Ladder, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    routes: tuple[str, ...] = ()


PROMPT, RESTART, HIBERNATE, RUN = "prompt", "restart", "hibernate", "run"


@dataclass(frozen=True, slots=True)
class Reaction:
    """What is done about incidents of a kind: after how long, how often in all, and with which pauses."""

    kind: IncidentKind
    do: str
    budget: int = 2
    after_s: float = 0.0
    every_s: float = 300.0
    text: str = ""  # of a prompt
    command: tuple[str, ...] = ()  # of what is run
    team: str | None = None
