"""Observing: what was read, found and said of a session is taken in; judging is for others, and nothing is concluded here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vigil.core import hearing, mass, pulses, tally, watching
from vigil.core.book import Book
from vigil.core.changing import replace
from vigil.core.doubting import is_news, repair, weigh, well_again
from vigil.core.effects import CloseLaunch, LogEntry
from vigil.core.events import Closed, Found, Gap, Noted, Observed, RuntimeEnded, Swept, Weighed
from vigil.core.model import Axis, Fact, State
from vigil.core.summary import summarise
from vigil.core.transition import become
from vigil.core.waking import judge_resume


def observed(book: Book, event: Observed, now: float) -> None:
    """Take in what the axes read now, and judge it."""
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
        if session.doing.turn:
            changes["tally"] = tally.silent(session.tally, max(last_at, book.void_before), active_at)
    for evidence, at in (("output", active_at), ("screen", event.printed_at), ("delivery", event.delivered_at)):
        if at is not None:
            session = hearing.note_work(session, evidence, at)
    facts = valid(book, event.facts)
    heard = active_at is not None and is_news(session)
    session = book.read_axes(session, facts, **changes)
    if heard:
        well_again(book, session, now)
    elif facts:
        weigh(book, session, now)
    else:  # nothing was read: that is no sample
        book.keep(session, durable=book.is_behind(session, hearing.KEPT_S))
    if event.socket_lost:
        repair(book, session, book.sessions[session.id], now)
    watching.left_alone(book, before, book.sessions[session.id], now)


def swept(book: Book, event: Swept, now: float) -> None:
    """Take in a pass over all launches; many that look dead at once are one matter of the host."""
    gone = sum(1 for seen in event.observed if _looks_dead(valid(book, seen.facts)))
    mass.count_inferred(book, gone, event.looked_at, now)
    for seen in event.observed:
        observed(book, seen, now)


def _looks_dead(facts: tuple[Fact, ...]) -> bool:
    """Say whether a session looks dead and nobody is sure."""
    dead = [fact for fact in facts if fact.axis in (Axis.RUNTIME, Axis.PROCESS) and fact.value == "dead"]
    return bool(dead) and not any(fact.conclusive for fact in dead)


def valid(book: Book, facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts that still say something: what was read before a gap does not, unless the kernel said it."""
    return tuple(fact for fact in facts if fact.observed_at >= book.void_before or fact.conclusive)


def found(book: Book, event: Found, now: float) -> None:
    """The agent itself was found: from now on its life is the launch's."""
    session = book.living(event.launch_id)
    if session is None or session.launch is None or session.launch.found is not None:
        return
    launch = replace(session.launch, found=event.process)
    book.change.launches.append(launch)
    session = book.read_axes(replace(session, launch=launch), (event.fact,))
    book.log(now, session, "session.agent-found", pid=event.process.pid)
    if session.state is State.STARTING:
        session = become(book, session, now, State.RUNNING, f"up as pid {event.process.pid}", hold=None)
        session = pulses.begin(book, session, now)
        watching.begin(book, session, now)
    else:
        book.keep(session)


def weighed(book: Book, event: Weighed, _now: float) -> None:
    """Remember how much memory a launch had at most, also after its death; it is durable with what is written of it next."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        book.keep(replace(session, tally=tally.measured(session.tally, event.memory_bytes)), durable=False)


def runtime_ended(book: Book, event: RuntimeEnded, _now: float) -> None:
    """The pane that a dead agent left open has closed: nothing is left to look at."""
    session = book.of_launch(event.launch_id)
    launch = session.launch if session else None
    if session is None or launch is None or launch.ended_at is None or launch.closed or session.state is State.ENDING:
        return
    book.do(CloseLaunch(launch))


def gap(book: Book, event: Gap, now: float) -> None:
    """Nobody looked for a while: what was read before says nothing, and no doubt grew older meanwhile."""
    book.void_before = now
    book.change.log.append(LogEntry(now, "daemon.gap", data={"lasted_s": round(event.lasted_s, 3)}))
    for session in list(book.sessions.values()):
        if session.doubt is not None:
            doubt = session.doubt
            later = replace(doubt, since=doubt.since + event.lasted_s, sampled_at=doubt.sampled_at + event.lasted_s)
            session = book.keep(replace(session, doubt=later))
        if session.pulse is not None:
            later_s = session.pulse.due_from + event.lasted_s
            session = book.keep(replace(session, pulse=replace(session.pulse, due_from=later_s)), durable=False)
        watching.missed(book, session, event.lasted_s, now)


def closed(book: Book, event: Closed, now: float) -> None:
    """Show what became of the runtime of a dead launch, and what is left of its conversation."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        session = book.read_axes(book.close(session) if event.gone else session, event.facts)
        session = judge_resume(book, book.keep(replace(session, transcript=event.transcript or session.transcript)), now)
        summarise(book, session, now)


def noted(book: Book, event: Noted, now: float) -> None:
    """Log what changes nothing."""
    whose = (event.session_id, event.session, event.launch_id)
    book.change.log.append(LogEntry(now, event.kind, *whose, dict(event.data)))
