"""Escalation: which notices of an incident are due, when, and on which route (the ladder).

Pure. A notice's id names its incident, step and repeat: once recorded, only its own retries make it due again (P12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vigil.core.model.incident import (
    Incident,
    IncidentKind,
    Ladder,
    LadderStep,
    Notice,
    NoticeEvent,
    NoticeState,
    Rung,
    Severity,
    Telling,
)
from vigil.core.model.replace import replace
from vigil.core.rules.notice import FIRST, OPEN, TOLD, is_owed, told_routes
from vigil.core.rules.quiet_hours import is_of_team, quiet_until

SEVERITY: dict[IncidentKind, Severity] = {
    IncidentKind.SATURATED: Severity.URGENT,
    IncidentKind.STUCK: Severity.URGENT,
    IncidentKind.SERVER_DIED: Severity.URGENT,
    IncidentKind.MASS_DEATH: Severity.URGENT,
    IncidentKind.KEEPER_LOST: Severity.URGENT,
    IncidentKind.STORE_LOST: Severity.URGENT,
    IncidentKind.EXHAUSTED: Severity.URGENT,
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
USUAL_S = (0.0, 1800.0, 7200.0)  # routes without a ladder: at once, after half an hour, after two hours


@dataclass(frozen=True, slots=True)
class Due:
    """A notice that an escalation makes due; computed again, its id is the same."""

    notice_id: str
    route: str
    event: NoticeEvent
    incident: Incident
    before: Notice | None = None  # its record, if it was tried already
    rung: Rung | None = None  # None: beside the ladder


def usual_ladders(routes: Iterable[str]) -> tuple[Ladder, ...]:
    """Return the escalation ladders for routes without one; people hear of warnings once."""
    routes = tuple(routes)
    if not routes:
        return ()
    steps = tuple(LadderStep(route, after_s) for after_s in USUAL_S for route in routes)
    once = tuple(LadderStep(route) for route in routes)
    return (Ladder(steps, Severity.URGENT), Ladder(steps, Severity.ACTION), Ladder(once, Severity.WARNING))


def steps_of(incident: Incident, telling: Telling) -> tuple[LadderStep, ...]:
    """Return the steps of an incident's ladder, a team's own first, without unreachable routes."""
    matching = [
        ladder
        for ladder in telling.ladders
        if ladder.kind in (None, incident.kind)
        and ladder.severity in (None, incident.severity)
        and (ladder.team is None or is_of_team(incident, ladder.team))
    ]
    found = min(matching, key=_breadth) if matching else None
    steps = found.steps if found is not None else ()
    if not incident.about or (found is not None and not found.steps):
        return steps
    left = tuple(step for step in steps if step.route not in incident.about)
    first_s = min((step.after_s for step in left), default=0.0)  # the first step left moves to the start
    left = tuple(replace(step, after_s=step.after_s - first_s) for step in left)
    return left or tuple(LadderStep(route) for route in telling.routes if route not in incident.about)


def _breadth(ladder: Ladder) -> tuple[bool, int]:
    if ladder.kind is not None:
        return ladder.team is None, 0
    return ladder.team is None, 1 if ladder.severity is not None else 2


def due_notices(incident: Incident, telling: Telling, now: float) -> list[Due]:
    """Return an incident's notices that are due now; of late repeats only the newest.

    A route hears `opened` until one notice reached it, however late. Only routes that were told get the all-clear."""
    if quiet_until(incident, telling.quiet, now) is not None:
        return []
    return _due(incident, telling, now)


def _due(incident: Incident, telling: Telling, now: float) -> list[Due]:
    if incident.resolved_at is not None:
        return [*_owed(incident, telling, now), *_all_clears(incident, now), *_retries(incident, now)]
    if incident.acked_at is not None:
        return []
    due = _steps_due(incident, telling, now)
    new = [notice.rung for notice in due if notice.rung is not None]
    retries = [again for again in _retries(incident, now) if not any(rung.is_same_step(again.rung) for rung in new)]
    return [*due, *_told_again(incident, now), *retries]


def _owed(incident: Incident, telling: Telling, now: float) -> list[Due]:
    """Return the first notices of an urgent incident for routes that it was over too soon for."""
    first_at = _first_at(incident, telling)
    if not incident.owed or incident.resolved_at is None or first_at is None or now < _owed_at(incident, first_at):
        return []
    due = _steps_due(incident, telling, max(incident.resolved_at, first_at))
    return [notice for notice in due if notice.event in FIRST]


def _owed_at(incident: Incident, first_at: float) -> float:
    """Return when an owed notice is due: as while it lasted, and no later than an all-clear."""
    return min(first_at, incident.over_at or first_at)


def _first_at(incident: Incident, telling: Telling) -> float | None:
    """Return the moment of the first step of an incident's ladder."""
    return min((_moment(step, _base(incident), 0) for step in steps_of(incident, telling)), default=None)


def _steps_due(incident: Incident, telling: Telling, now: float) -> list[Due]:
    told, first = set(told_routes(incident)), NoticeEvent.OPENED
    if incident.escalated_at is not None:  # every route hears of that once
        first = NoticeEvent.ESCALATED
        told = {notice.route for notice in incident.notices if notice.event is first}
    due = []
    for index, step in enumerate(steps_of(incident, telling)):
        number = _repeat_at(step, _base(incident), now)
        if number > _newest(incident, index):
            event = NoticeEvent.REMINDER if step.route in told else first
            rung = Rung(index, number, incident.escalated_at is not None)
            due.append(Due(_id_of(incident, rung), step.route, event, incident, rung=rung))
            told.add(step.route)
    return due + _reminders(incident, {notice.route for notice in due})


def _reminders(incident: Incident, told_now: set[str]) -> list[Due]:
    """Return the newest due reminder beside the ladder, for routes that hear nothing else now."""
    if not incident.reminders:
        return []
    recorded = {notice.id for notice in incident.notices}
    due = [
        Due(f"{incident.id}/reminded{incident.reminders}/{route}", route, NoticeEvent.REMINDER, incident)
        for route in sorted(told_routes(incident) - told_now)
    ]
    return [notice for notice in due if notice.notice_id not in recorded]


def _base(incident: Incident) -> float:
    """Return from when an escalation ladder counts: anew once its incident turns urgent."""
    return incident.opened_at if incident.escalated_at is None else incident.escalated_at


def _id_of(incident: Incident, rung: Rung) -> str:
    return f"{incident.id}/{'u' if rung.urgent else ''}{rung.step}/{rung.number}"


def _all_clears(incident: Incident, now: float) -> list[Due]:
    if incident.resolved_at is None or incident.hushed or now < (incident.over_at or incident.resolved_at):
        return []
    recorded = {notice.id for notice in incident.notices}
    routes = sorted(_believe_it_lasts(incident))
    due = [Due(f"{incident.id}/resolved/{route}", route, NoticeEvent.RESOLVED, incident) for route in routes]
    return [notice for notice in due if notice.notice_id not in recorded]


def _told_again(incident: Incident, now: float) -> list[Due]:
    """Return due notices that an incident is back, for routes that heard nothing since."""
    if incident.again_at is None or now < incident.again_at:
        return []
    recorded = {notice.id for notice in incident.notices}
    since = {notice.route for notice in incident.notices if notice.at >= (incident.reopened_at or 0.0)}
    ids = {route: f"{incident.id}/again{incident.reopened}/{route}" for route in sorted(told_routes(incident) - since)}
    return [Due(id_, route, NoticeEvent.AGAIN, incident) for route, id_ in ids.items() if id_ not in recorded]


def _retries(incident: Incident, now: float) -> list[Due]:
    """Return the notices of an incident whose retry is due now."""
    due = [notice for notice in _waiting(incident) if (notice.retry_at or 0.0) <= now]
    return [Due(notice.id, notice.route, notice.event, incident, notice, notice.rung) for notice in due]


def _waiting(incident: Incident) -> list[Notice]:
    """Return notices that become due by a retry; of a resolved incident all-clears and owed ones."""
    return [
        notice
        for notice in incident.notices
        if notice.state is NoticeState.RETRYING
        and not incident.hushed
        and (incident.resolved_at is None or notice.event is NoticeEvent.RESOLVED or _is_owed(notice, incident))
        and not _is_overtaken(notice, incident)
    ]


def _is_overtaken(notice: Notice, incident: Incident) -> bool:
    """Say whether a later repeat of the same ladder step is under way or arrived."""
    rung = notice.rung
    if rung is None:
        return False
    others = [other.rung for other in incident.notices if other.state is not NoticeState.CANCELLED and other.rung is not None]
    return any(other.is_same_step(rung) and other.number > rung.number for other in others)


def _is_owed(notice: Notice, incident: Incident) -> bool:
    return is_owed(notice.event, notice.route, incident)


def _believe_it_lasts(incident: Incident) -> set[str]:
    """Return the routes whose last notice told of an incident as open: these get the all-clear."""
    told = [notice for notice in incident.notices if notice.state in TOLD and notice.event is not NoticeEvent.RESOLVED]
    newest = {notice.route: notice for notice in sorted(told, key=lambda notice: notice.at)}
    return {route for route, notice in newest.items() if not notice.over}


def _repeat_at(step: LadderStep, base: float, now: float) -> int:
    """Return the number of a ladder step's newest due repeat: 0 the first, -1 none."""
    first = _moment(step, base, 0)
    if now < first:
        return -1
    if not step.repeat_s:
        return 0
    number = int((now - first) // step.repeat_s)
    # The division may round past a moment, either way. `_moment` decides, so that `_steps_due` and `_coming` agree.
    while _moment(step, base, number) > now:
        number -= 1
    while _moment(step, base, number + 1) <= now:
        number += 1
    return number


def _moment(step: LadderStep, base: float, number: int) -> float:
    return base + step.after_s + number * (step.repeat_s or 0.0)


def _newest(incident: Incident, index: int) -> int:
    """Return the newest recorded repeat of a ladder's step; a clock set back repeats none."""
    step = Rung(index, 0, incident.escalated_at is not None)
    numbers = (notice.rung.number for notice in incident.notices if notice.rung is not None and step.is_same_step(notice.rung))
    return max(numbers, default=-1)


def next_at(incident: Incident, telling: Telling, now: float) -> float | None:
    """Return when an incident's next notice is due: `now` if one is, None if never."""
    moment = now if _due(incident, telling, now) else min(_coming(incident, telling, now), default=None)
    return None if moment is None else quiet_until(incident, telling.quiet, moment) or moment


def _coming(incident: Incident, telling: Telling, now: float) -> list[float]:
    over = incident.resolved_at is not None
    if incident.acked_at is not None and not over:
        return []
    moments = [notice.retry_at or 0.0 for notice in _waiting(incident)]
    if over:
        waits = incident.over_at is not None and _believe_it_lasts(incident) and not incident.hushed
        moments += [incident.over_at] if waits and incident.over_at is not None else []
        first_at = _first_at(incident, telling) if incident.owed else None
        moments += [_owed_at(incident, first_at)] if first_at is not None else []
    else:
        moments += [incident.again_at] if incident.again_at is not None and told_routes(incident) else []
        for index, step in enumerate(steps_of(incident, telling)):
            number = 1 + max(_repeat_at(step, _base(incident), now), _newest(incident, index))
            if number == 0 or step.repeat_s:
                moments.append(_moment(step, _base(incident), number))
    return [moment for moment in moments if moment > now]


def is_settled(incident: Incident) -> bool:
    """Say whether an incident's escalation is over: what is owed was told, and every all-clear."""
    if incident.hushed:
        return True
    if incident.owed and not told_routes(incident):
        return False
    cleared = {notice.route for notice in incident.notices if notice.event is NoticeEvent.RESOLVED}
    return not any(notice.state in OPEN for notice in incident.notices) and _believe_it_lasts(incident) <= cleared
