"""The reaper records an intent for each verdict of its table, then acts on it (P8).

The table keeps what a person uses, what works and what is unclear (P2); tmux compares once more in the moment of the kill."""

from __future__ import annotations

from vigil.core.book import GRACE_S, Book
from vigil.core.effects import EndLaunch, EndStray, Judged, LogEntry, ReapEnded
from vigil.core.events import Sighted, Spared, StrayEnded
from vigil.core.handlers.incident import open_incident, resolve
from vigil.core.handlers.intent import intend, tell_outcome
from vigil.core.handlers.transition import become
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.incident import IncidentKind
from vigil.core.model.replace import replace
from vigil.core.model.restart import After
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.model.sighting import Glimpse, ReapAction, ReapClass, ReapOutcome, ReapVerdict
from vigil.core.rules import incident
from vigil.core.rules.reap import judge

SETTLED_S = 600.0  # a lost store stays an incident at least so long
AFTER = {ReapClass.ORPHAN: After.STOP, ReapClass.ARCHIVED: After.ARCHIVE, ReapClass.IDLE: After.PARK}


def sighted(book: Book, event: Sighted, now: float) -> None:
    """Take in a sweep's sightings: have the reaper's table judge them, log, and act."""
    for glimpse in event.glimpses:
        session = book.living(glimpse.launch_id)
        if session is not None and glimpse.clients:  # that they left, the next look says
            book.keep(with_vitals(session, attached=glimpse.clients), durable=False)
    verdicts, strays, why_kept = judge(book.sessions.values(), book.roles, event.glimpses, event.strays, event.policy, now)
    if event.ticket:
        book.do(Judged(event.ticket, (*verdicts, *(verdict for verdict, _ in strays))))
    glimpses = {glimpse.launch_id: glimpse for glimpse in event.glimpses}
    for verdict in verdicts:
        session = book.of_launch(verdict.launch_id)
        if verdict.action is not ReapAction.KEEP and session is not None:
            reap(book, session, verdict, glimpses[verdict.launch_id], event, now)
    for verdict, stray in strays:
        if verdict.action is ReapAction.KILL:
            pids = [process.pid for process in stray.all_processes]
            data = {"class": verdict.kind.value, "evidence": list(verdict.evidence), "pids": pids, "actor": event.actor}
            book.change.log.append(LogEntry(now, "orphan.reaping", None, stray.name or None, stray.launch_id, data))
            book.do(EndStray(stray, GRACE_S, event.ticket))
    _tell_of_store(book, why_kept, now)


def _tell_of_store(book: Book, why_kept: str, now: float) -> None:
    """Keep one incident open while the reaper finds launches that the store seems to miss."""
    key = incident.key_of(IncidentKind.STORE_LOST)
    if why_kept:
        words = f"nothing is reaped as an orphan: {why_kept}; vigil reap --dry-run shows them"
        if key in book.incidents:
            return
        open_incident(book, IncidentKind.STORE_LOST, None, words, now)
    elif key in book.incidents and now - book.incidents[key].opened_at >= SETTLED_S:
        resolve(book, key, "every launch that lives is known", now)


def reap(book: Book, session: Session, verdict: ReapVerdict, glimpse: Glimpse, event: Sighted, now: float) -> None:
    """Reap a living launch if its server agrees, or clear away a dead one's leftovers."""
    launch, actor = session.launch, event.actor
    assert launch is not None
    reason = f"{verdict.kind}: {verdict.evidence[0]}"
    data = {"class": verdict.kind.value, "action": verdict.action.value, "evidence": list(verdict.evidence), "actor": actor}
    book.log(now, session, "session.reaping", **data)
    intent = intend(book, session, IntentVerb.REAP, Cause.POLICY, actor, reason, now, verdict, event.ticket)
    if launch.ended_at is not None:
        book.keep(with_vitals(session, intent=intent))
        book.do(EndLaunch(launch, GRACE_S))
        return
    words = f"being reaped ({reason})"
    become(book, session, now, State.ENDING, words, hold=None, after=AFTER[verdict.kind], intent=intent)
    book.do(EndLaunch(launch, GRACE_S, unless_attended=True, reap=True, guard=glimpse.guard))


def spared(book: Book, event: Spared, now: float) -> None:
    """Let a session live that was to be reaped; if it died, end the rest."""
    session = book.of_launch(event.launch_id)
    if (
        session is None
        or session.state is not State.ENDING
        or session.vitals.intent is None
        or session.vitals.intent.verb is not IntentVerb.REAP
    ):
        return
    assert session.launch is not None
    if session.launch.ended_at is not None:
        book.do(EndLaunch(session.launch, GRACE_S, unless_attended=True))
        return
    book.log(now, session, "session.spared", verb=IntentVerb.REAP.value, why=event.why)
    # If its server killed it all the same, that kill is ours and no crash (P8).
    intent = replace(session.vitals.intent, void_from=now + GRACE_S)
    words = f"not reaped: {event.why}"
    become(book, session, now, State.RUNNING, words, after=None, intent=intent, waking=None)
    tell_outcome(book, intent, ReapOutcome.UNKNOWN if event.unsure else ReapOutcome.SPARED, words)


def stray_ended(book: Book, event: StrayEnded, now: float) -> None:
    """When the reaper's end of a stray is over: log it, and answer the sweep."""
    stray = event.stray
    data: dict[str, str | int] = {"launch": stray.launch_id, "session": stray.name}
    if event.outcome in (ReapOutcome.ENDED, ReapOutcome.FAILED):
        kind = "orphan.reaped"
        data |= {"class": ReapClass.ORPHAN, "ended": event.ended, "left": event.left}
    else:
        kind = "orphan.spared"
        data |= {"why": event.why, "outcome": event.outcome}
    book.change.log.append(LogEntry(now, kind, None, stray.name or None, stray.launch_id, data))
    if event.ticket:
        book.do(ReapEnded(event.ticket, stray.launch_id, event.outcome, event.why))
