"""Incidents: what a human should know, which notices went out, and what Vigil did about it (P12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.death import EvidenceLine


class IncidentKind(StrEnum):
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
    EXHAUSTED = "exhausted"  # the host lacks room, processes or descriptors: what happens is not recorded, or launches wait
    UNDELIVERED = "undelivered"


class Severity(StrEnum):
    URGENT = "urgent"
    ACTION = "action"
    WARNING = "warning"


class NoticeState(StrEnum):
    SENDING = "sending"
    SENT = "sent"
    RETRYING = "retrying"
    FAILED = "failed"
    UNKNOWN = "unknown"  # it may have arrived
    CANCELLED = "cancelled"


class NoticeEvent(StrEnum):
    """What a notice of an incident says."""

    OPENED = "opened"
    REMINDER = "reminder"
    AGAIN = "again"
    ESCALATED = "escalated"
    RESOLVED = "resolved"


class ReactionOutcome(StrEnum):
    BEGUN = "begun"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"  # the daemon ended meanwhile


@dataclass(frozen=True, slots=True)
class Rung:
    """Which repeat of which step of an incident's ladder a notice is."""

    step: int
    number: int  # 0 is the first
    urgent: bool = False  # of the ladder that began anew when its incident became urgent

    def is_same_step(self, other: Rung | None) -> bool:
        """Say whether another notice's rung is on the same step of an incident's ladder."""
        return other is not None and (self.step, self.urgent) == (other.step, other.urgent)


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice of an incident to one route, and its fate; retries keep the id."""

    id: str
    route: str
    state: NoticeState
    at: float
    why: str = ""
    event: NoticeEvent = NoticeEvent.OPENED  # what it says
    attempts: int = 1
    unsure: int = 0  # attempts that may have arrived
    retry_at: float | None = None
    took: tuple[str, ...] = ()  # of several receivers, those that took it: they get no retry
    revived: bool = False  # given up before; one last try, as its route delivers again
    rung: Rung | None = None  # None: beside the ladder
    over: bool = False  # it said that its incident is over already


@dataclass(frozen=True, slots=True)
class Reacted:
    at: float
    do: str
    outcome: ReactionOutcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident: what a human should know; it opens once and resolves once (P12)."""

    id: str
    key: str  # subject and kind; at most one is open per key
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
    about: tuple[str, ...] = ()  # unreachable routes, if that is the incident
    over_at: float | None = None  # over for good from here; before, it reopens
    reopened: int = 0  # how often it came back so
    reopened_at: float | None = None
    again_at: float | None = None  # it came back; people hear so if it lasts until then
    flaps: int = 0  # how many went before it, each soon after the last
    escalated_at: float | None = None  # every reaction was in vain: urgent since then
    reactions: tuple[Reacted, ...] = ()
    spent: int = 0  # reactions already spent on those before it
    reminders: int = 0  # reminders beside its ladder
    hushed: bool = False  # its session was removed: no more notices, not even an all-clear
    owed: bool = False  # urgent, and over: a route that has not heard of it still does (P14)


ALWAYS = frozenset({Severity.URGENT})  # these always pass


@dataclass(frozen=True, slots=True)
class Quiet:
    """Quiet hours, for all or for one team, and which incidents pass."""

    from_s: float  # after midnight
    to_s: float  # the same as `from_s`: never
    passes: frozenset[Severity] = ALWAYS
    offset_s: Callable[[float], float] = lambda _at: 0.0  # of the wall's clock from UTC, at a moment
    team: str | None = None


@dataclass(frozen=True, slots=True)
class LadderStep:
    route: str
    after_s: float = 0.0
    repeat_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ladder:
    """The ladder of steps for incidents of a severity, kind or team; None matches all."""

    steps: tuple[LadderStep, ...]
    severity: Severity | None = None
    kind: IncidentKind | None = None
    team: str | None = None


@dataclass(frozen=True, slots=True)
class Telling:
    ladders: tuple[Ladder, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    routes: tuple[str, ...] = ()


PROMPT, RESTART, HIBERNATE, RUN = "prompt", "restart", "hibernate", "run"


@dataclass(frozen=True, slots=True)
class Reaction:
    """A configured reaction to incidents of a kind: when first, how often, with which pauses."""

    kind: IncidentKind
    do: str
    budget: int = 2
    after_s: float = 0.0
    every_s: float = 300.0
    text: str = ""  # of a prompt
    command: tuple[str, ...] = ()  # of what is run
    team: str | None = None
