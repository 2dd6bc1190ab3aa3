"""Observation: the core takes in what sensors read of sessions; other handlers judge it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vigil.core.book import Book
from vigil.core.effects import LogEntry
from vigil.core.events import Gap, Noted, Observed, Swept
from vigil.core.handlers import host_incident, speech, watchdog
from vigil.core.handlers.doubt import is_news, repair, weigh, well_again
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.replace import replace
from vigil.core.model.session import with_vitals
from vigil.core.rules import activity, summary


def observed(book: Book, event: Observed, now: float) -> None:
    """Take in an observation of a launch's axes, and have it judged."""
    before = book.living(event.launch_id)
    if before is None:
        return
    session = before
    changes: dict[str, Any] = {}
    if event.attached is not None:
        changes["attached"] = event.attached
    active_at = None if event.active_at is None else min(event.active_at, now)
    if active_at is not None:
        last_at = session.last_activity_at or 0.0
        changes["last_activity_at"] = max(active_at, last_at)
        if session.vitals.doing.turn:
            changes["tally"] = summary.count_silence(session.vitals.tally, max(last_at, book.void_before), active_at)
    for evidence, at in (("output", active_at), ("screen", event.printed_at), ("delivery", event.delivered_at)):
        if at is not None:
            session = activity.note_work(session, evidence, at)
    facts = valid(book, event.facts)
    heard = active_at is not None and is_news(session)
    session = book.read_axes(session, facts, **changes)
    if heard:
        well_again(book, session, now)
    elif facts:
        weigh(book, session, now)
    else:  # nothing was read, so this is no sample
        book.keep(session, durable=book.is_behind(session, speech.KEPT_S))
    if event.socket_lost:
        repair(book, session, book.sessions[session.id], now)
    watchdog.left_alone(book, before, book.sessions[session.id], now)


def swept(book: Book, event: Swept, now: float) -> None:
    """Take in the observations of one pass; many that look dead are the host's incident."""
    gone = sum(1 for seen in event.observed if _looks_dead(valid(book, seen.facts)))
    host_incident.count_inferred(book, gone, event.looked_at, now)
    for seen in event.observed:
        observed(book, seen, now)


def _looks_dead(facts: tuple[Fact, ...]) -> bool:
    """Say whether an observation only infers that a session is dead."""
    dead = [fact for fact in facts if fact.axis in (Axis.RUNTIME, Axis.PROCESS) and fact.value == AxisValue.DEAD]
    return bool(dead) and not any(fact.conclusive for fact in dead)


def valid(book: Book, facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """From an observation, return the facts read since the last gap, and conclusive ones."""
    return tuple(fact for fact in facts if fact.observed_at >= book.void_before or fact.conclusive)


def gap(book: Book, event: Gap, now: float) -> None:
    """After a gap: void all earlier observations; no doubt grew older during it."""
    book.void_before = now
    book.log(now, None, "daemon.gap", lasted_s=round(event.lasted_s, 3))
    for session in list(book.sessions.values()):
        if session.vitals.doubt is not None:
            doubt = session.vitals.doubt
            later = replace(doubt, since=doubt.since + event.lasted_s, sampled_at=doubt.sampled_at + event.lasted_s)
            session = book.keep(with_vitals(session, doubt=later))
        if session.vitals.pulse is not None:
            later_s = session.vitals.pulse.due_from + event.lasted_s
            session = book.keep(with_vitals(session, pulse=replace(session.vitals.pulse, due_from=later_s)), durable=False)
        watchdog.missed(book, session, event.lasted_s, now)


def noted(book: Book, event: Noted, now: float) -> None:
    whose = (event.session_id, event.session, event.launch_id)
    book.change.log.append(LogEntry(now, event.kind, *whose, dict(event.data)))
