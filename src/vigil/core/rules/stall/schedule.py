"""Schedule: how much silence a session may have, when the watchdog looks next, and when a question is told again."""

from __future__ import annotations

from dataclasses import fields

from vigil.core.model.session import Session
from vigil.core.model.stall import UNSAID, Stall, Thresholds, Watchdog, Watchdogs
from vigil.core.rules.activity import COMPACTION
from vigil.core.rules.stall.case import patience_of, silent_from, tools_wait_until, waits_until
from vigil.core.rules.stall.speech import CIRCLES, COMPACTIONS, NOT_FURTHER
from vigil.core.rules.stall.verdict import SAMPLES, SICK, StallVerdict

WINDOW_S = 60.0  # findings closer than this count as one
REMINDERS = 3.0  # times the first reminder, between the later ones


def thresholds_of(agent: str, own: Watchdog, configured: Watchdogs) -> Thresholds:
    """Return how much silence a session may have: by its role, agent, configuration or defaults."""
    said = (own, configured.agents.get(agent, UNSAID), configured.general)
    given = {}
    for name in (entry.name for entry in fields(Thresholds)):
        found = next((value for one in said if (value := getattr(one, name)) is not None), None)
        if found is not None:
            given[name] = found
    return Thresholds(**given)


def due_at(session: Session, limits: Thresholds, now: float) -> float:
    """Return when the watchdog is to look at a session next."""
    doing, since = session.vitals.doing, silent_from(session)
    if doing.asked:
        return reminder_at(session, limits)
    if (doing.retries or doing.waits) and now < (until := waits_until(doing, since)):
        return until
    if (tools_until := tools_wait_until(doing)) is not None and now < tools_until:
        return tools_until
    first_s = min(patience_of(doing, session.vitals.trail, limits), limits.stall_after_s)
    first_at = since + first_s
    if _circles(session, limits, now):
        first_at = min(first_at, now)
    stall = session.vitals.stall
    if stall is None or stall.at < first_at or stall.verdict == StallVerdict.SUPERVISOR_LATE:
        return first_at
    return _next_at(session, limits, stall)


def _next_at(session: Session, limits: Thresholds, stall: Stall) -> float:
    """Return when the watchdog looks at a silent session again: at thresholds, or to warn."""
    since = silent_from(session)
    moments = [since + patience_of(session.vitals.doing, session.vitals.trail, limits), since + limits.liveness_timeout_s]
    moments += [stall.at + limits.stall_repeat_s, (stall.warned_at or stall.at) + limits.stall_repeat_s]
    if stall.verdict in SICK and stall.samples < max(2, SAMPLES.get(StallVerdict(stall.verdict), 1)):
        moments.append(stall.sampled_at + window_s(limits))
    if stall.stepped_at is not None:  # so long a remedy has to show its effect
        moments.append(stall.stepped_at + max(window_s(limits), min(10.0, limits.stall_after_s)))
    return min(at for at in moments if at > stall.at)


def window_s(limits: Thresholds) -> float:
    """Return how far apart looks of the watchdog must be to count as two findings."""
    return min(WINDOW_S, limits.stall_after_s / 2)


def _circles(session: Session, limits: Thresholds, now: float) -> bool:
    """Say whether the watchdog looks early: a session that speaks may go in circles."""
    trail, stall = session.vitals.trail, session.vitals.stall
    if stall is not None and now - stall.at < limits.stall_repeat_s:
        return False
    many = trail.times >= (COMPACTIONS if trail.again == COMPACTION else CIRCLES)
    still_s = now - max(trail.further_at, trail.floor)
    speaks = now - trail.understood_at < limits.stall_after_s
    return session.vitals.doing.turn and (many or (speaks and still_s >= NOT_FURTHER * limits.subagent_timeout_s))


def reminder_at(session: Session, limits: Thresholds) -> float:
    """Return when people are reminded of a waiting question next, later ones more rarely."""
    every_s, trail = limits.approval_reminder_s, session.vitals.trail
    asked_at = session.vitals.doing.asked[0].since
    next_at = trail.reminded_at + REMINDERS * every_s if reminders_of(session) else asked_at + every_s
    return max(next_at, trail.floor + every_s)


def reminders_of(session: Session) -> int:
    """Return how often people were reminded of the oldest open question so far."""
    trail = session.vitals.trail
    return trail.reminders if trail.reminded_at >= session.vitals.doing.asked[0].since else 0
