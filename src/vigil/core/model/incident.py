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


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice of an incident to one route, and what became of it; its id is the same when it is sent again."""

    id: str
    route: str
    state: str  # sending, sent, retrying, failed, unknown or cancelled (core/rules/notice.py)
    at: float
    why: str = ""
    event: str = "opened"  # what it says: opened, reminder, again, escalated or resolved
    attempts: int = 1
    unsure: int = 0  # attempts that may have arrived all the same
    retry_at: float | None = None
    took: tuple[str, ...] = ()  # where its route reaches several at once, those that took it: they are not told again
    revived: bool = False  # it was given up, and is tried once more because its route delivers again


@dataclass(frozen=True, slots=True)
class Reacted:
    """One reaction to an incident, and what became of it."""

    at: float
    do: str
    outcome: str  # begun, done, refused, failed or unknown
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
