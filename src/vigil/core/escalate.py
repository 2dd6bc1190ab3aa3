"""Escalation: which notices of an incident are due, when, and to whom (the ladder).

Pure: times come in from outside. A notice's id names its incident, its step and its repeat, so whoever computes it again gets
the same one, and what was recorded under it is never due again (P12).
"""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model import Incident, IncidentKind, Severity

SEVERITY: dict[IncidentKind, Severity] = {
    IncidentKind.SATURATED: Severity.URGENT,
    IncidentKind.STUCK: Severity.URGENT,
    IncidentKind.SERVER_DIED: Severity.URGENT,
    IncidentKind.MASS_DEATH: Severity.URGENT,
    IncidentKind.KEEPER_LOST: Severity.URGENT,
    IncidentKind.NEEDS_INPUT: Severity.ACTION,
    IncidentKind.STALLED: Severity.ACTION,
    IncidentKind.AUTH: Severity.ACTION,
    IncidentKind.TAINTED: Severity.ACTION,
    IncidentKind.UNDELIVERED: Severity.ACTION,
    IncidentKind.LIMIT: Severity.WARNING,
    IncidentKind.UNHEALTHY_PROBER: Severity.WARNING,
    IncidentKind.LATE_DAEMON: Severity.WARNING,
    IncidentKind.LOW_MEMORY: Severity.WARNING,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One rung of a ladder: a route, how long an incident must be open and unacknowledged, and how often it is said again."""

    route: str
    after_s: float = 0.0
    repeat_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps for incidents of a severity, a kind, or both; None matches all."""

    steps: tuple[Step, ...]
    severity: Severity | None = None
    kind: IncidentKind | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A notice whose moment has come; its id is the same whenever it is computed again."""

    notice_id: str
    route: str
    event: str  # opened, reminder or resolved
    incident: Incident


def steps_of(incident: Incident, ladders: tuple[Ladder, ...]) -> tuple[Step, ...]:
    """Return the steps of the first ladder that matches; one that names a kind goes before one that does not."""
    matching = [
        ladder for ladder in ladders if ladder.kind in (None, incident.kind) and ladder.severity in (None, incident.severity)
    ]
    return min(matching, key=_breadth).steps if matching else ()


def _breadth(ladder: Ladder) -> int:
    if ladder.kind is not None:
        return 0
    return 1 if ladder.severity is not None else 2


def due_notices(incident: Incident, ladders: tuple[Ladder, ...], now: float) -> list[Due]:
    """Return the notices that are due now and not yet recorded.

    Of the repeats that nobody sent in time only the newest is due. A route hears `opened` until one notice reached it, also
    when that one comes late; who was told hears when it is over, who was not needs no all-clear.
    """
    if incident.resolved_at is not None:
        return _all_clears(incident)
    if incident.acked_at is not None:
        return []
    told = _told(incident)
    due = []
    for index, step in enumerate(steps_of(incident, ladders)):
        number = _repeat_at(step, incident.opened_at, now)
        if number > _newest(incident, index):
            event = "reminder" if step.route in told else "opened"
            due.append(Due(f"{incident.id}/{index}/{number}", step.route, event, incident))
            told.add(step.route)
    return due


def _all_clears(incident: Incident) -> list[Due]:
    recorded = {notice.id for notice in incident.notices}
    due = [Due(f"{incident.id}/resolved/{route}", route, "resolved", incident) for route in sorted(_told(incident))]
    return [notice for notice in due if notice.notice_id not in recorded]


def _told(incident: Incident) -> set[str]:
    return {notice.route for notice in incident.notices if notice.state == "sent"}


def _repeat_at(step: Step, opened_at: float, now: float) -> int:
    """Return the number of the newest repeat whose moment has come: 0 is the first notice, -1 says that none is due yet."""
    first = _moment(step, opened_at, 0)
    if now < first:
        return -1
    if not step.repeat_s:
        return 0
    number = int((now - first) // step.repeat_s)
    # The division may round past a moment, either way. `_moment` decides, so that what is due and what comes next agree.
    while _moment(step, opened_at, number) > now:
        number -= 1
    while _moment(step, opened_at, number + 1) <= now:
        number += 1
    return number


def _moment(step: Step, opened_at: float, number: int) -> float:
    return opened_at + step.after_s + number * (step.repeat_s or 0.0)


def _newest(incident: Incident, index: int) -> int:
    """Return the newest repeat recorded of a step; a clock that was set back must not bring older ones after it."""
    prefix = f"{incident.id}/{index}/"
    numbers = (int(notice.id.removeprefix(prefix)) for notice in incident.notices if notice.id.startswith(prefix))
    return max(numbers, default=-1)


def next_at(incident: Incident, ladders: tuple[Ladder, ...], now: float) -> float | None:
    """Return when the next notice is due: `now` if one is, None if there will be none as things are."""
    if due_notices(incident, ladders, now):
        return now
    if incident.resolved_at is not None or incident.acked_at is not None:
        return None
    moments = []
    for index, step in enumerate(steps_of(incident, ladders)):
        number = 1 + max(_repeat_at(step, incident.opened_at, now), _newest(incident, index))
        if number == 0 or step.repeat_s:
            moments.append(_moment(step, incident.opened_at, number))
    return min(moments, default=None)
