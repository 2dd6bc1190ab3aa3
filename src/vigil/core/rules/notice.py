"""Notices: what becomes of a notice after an attempt; delivered counts, tried does not (P12).

Pure. The sender records `sending` first, and repeats an attempt of unknown fate once: people hear a thing at most twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from vigil.core.model.incident import Incident, Notice, NoticeEvent, NoticeState
from vigil.core.model.replace import replace

OPEN = frozenset({NoticeState.SENDING, NoticeState.RETRYING})  # these are not final
TOLD = frozenset({NoticeState.SENT, NoticeState.UNKNOWN})  # these arrived, or may have
FIRST = frozenset({NoticeEvent.OPENED, NoticeEvent.ESCALATED})  # a route that knows nothing yet hears these
GIVEN_UP = frozenset({NoticeState.FAILED, NoticeState.UNKNOWN})
MOST_UNSURE = 2
FACTOR = 2.0
CAP_S = 600.0
JITTER = 0.2
REVIVED_S = 86400.0  # older ones are not sent any more
REMOVED = "its session was removed"
OVER = "it is over"


@dataclass(frozen=True, slots=True)
class RoutePatience:
    attempts: int = 8
    pause_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Attempt:
    ok: bool
    why: str = ""
    permanent: bool = False  # it would fail in the same way again
    unsure: bool = False  # it may have arrived all the same
    took: tuple[str, ...] = ()  # of several receivers, those that took it


class Tried(NamedTuple):
    notice: Notice
    attempt: Attempt
    patience: RoutePatience


class FateRow(NamedTuple):
    state: NoticeState
    holds: Callable[[Tried], bool]


FATES = (  # The first row that holds decides.
    FateRow(NoticeState.SENT, lambda tried: tried.attempt.ok),
    FateRow(NoticeState.FAILED, lambda tried: tried.attempt.permanent),
    FateRow(NoticeState.UNKNOWN, lambda tried: tried.notice.unsure >= MOST_UNSURE),
    FateRow(NoticeState.FAILED, lambda tried: tried.notice.attempts >= tried.patience.attempts),
    FateRow(NoticeState.RETRYING, lambda _: True),
)


def told_routes(incident: Incident) -> frozenset[str]:
    """Return the routes that a notice reached while its incident lasted, or may have."""
    told = (notice for notice in incident.notices if notice.state in TOLD and notice.event is not NoticeEvent.RESOLVED)
    return frozenset(notice.route for notice in told)


def why_unwanted(event: NoticeEvent, route: str, incident: Incident) -> str | None:
    """Return why people need not hear a notice any more; None if they do."""
    if incident.hushed:
        return REMOVED
    if event is NoticeEvent.RESOLVED:
        return None if incident.resolved_at is not None else "it came back"
    if incident.resolved_at is not None:
        return None if is_owed(event, route, incident) else OVER
    return "it was acknowledged" if incident.acked_at is not None else None


def is_owed(event: NoticeEvent, route: str, incident: Incident) -> bool:
    """Say whether a route still hears the first notice of an urgent incident that is over (P14)."""
    return incident.owed and event in FIRST and route not in told_routes(incident)


def begun(notice: Notice, now: float, over: bool = False) -> Notice:
    """Return a notice under way, and whether it says that its incident is over."""
    attempts = notice.attempts + 1
    return replace(notice, state=NoticeState.SENDING, at=now, attempts=attempts, retry_at=None, why="", over=over)


def fate_of(notice: Notice, attempt: Attempt, patience: RoutePatience, now: float, jitter: float) -> Notice:
    """Decide the fate of a notice after an attempt; jitter runs from -1 to 1."""
    took = tuple(dict.fromkeys((*notice.took, *attempt.took)))
    notice = replace(notice, at=now, why=attempt.why, unsure=notice.unsure + (1 if attempt.unsure else 0), took=took)
    state = next(row.state for row in FATES if row.holds(Tried(notice, attempt, patience)))
    retry_at = now + pause_s(notice.attempts, patience, jitter) if state is NoticeState.RETRYING else None
    return replace(notice, state=state, retry_at=retry_at)


def pause_s(attempts: int, patience: RoutePatience, jitter: float) -> float:
    longest_s = max(CAP_S, patience.pause_s)
    return min(longest_s, patience.pause_s * FACTOR ** min(attempts - 1, 64)) * (1 + JITTER * jitter)


def interrupted(notice: Notice, now: float) -> Notice:
    """Return a notice whose sending the daemon's end interrupted: perhaps sent, one try left."""
    if notice.state is not NoticeState.SENDING:
        return notice
    unsure = notice.unsure + 1
    if unsure >= MOST_UNSURE:
        return replace(notice, state=NoticeState.UNKNOWN, unsure=unsure, why="the daemon ended while it was being sent, twice")
    words = "the daemon ended while it was being sent"
    return replace(notice, state=NoticeState.RETRYING, unsure=unsure, retry_at=now, why=words)


def revived(notice: Notice, now: float) -> Notice:
    """Return a given-up notice for one last try: its route delivers again."""
    return replace(notice, state=NoticeState.RETRYING, retry_at=now, revived=True, why="its route delivers again")


def is_revivable(notice: Notice, now: float) -> bool:
    """Say whether a given-up notice surely did not arrive, and is recent enough to matter."""
    return notice.state is NoticeState.FAILED and not notice.revived and now - notice.at <= REVIVED_S


def cancelled(notice: Notice, why: str) -> Notice:
    """Return a notice as no longer needed; only one that waits for a retry changes."""
    waits = notice.state is NoticeState.RETRYING
    return replace(notice, state=NoticeState.CANCELLED, retry_at=None, why=why) if waits else notice


def uncancelled(notice: Notice, now: float) -> Notice:
    """Return a cancelled notice that is needed again: its condition came back."""
    cancelled = notice.state is NoticeState.CANCELLED
    return replace(notice, state=NoticeState.RETRYING, retry_at=now, why="") if cancelled else notice
