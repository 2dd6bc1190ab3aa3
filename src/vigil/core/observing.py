"""Observing: readings of the axes are taken in and judged by the liveness table; what cannot be read concludes nothing (P7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from vigil.core import incidents
from vigil.core.book import DOUBTED, Book
from vigil.core.dying import orphan
from vigil.core.effects import CloseLaunch, Conclude, LogEntry, Look, RepairSocket, SetTimer
from vigil.core.events import Closed, Found, Gap, Hooked, Noted, Observed, RuntimeEnded, Swept
from vigil.core.liveness import HANGUP_S, PATIENCE, QUIET_S, Judgement, Verdict, judge
from vigil.core.model import Axis, Doubt, DoubtKind, Fact, Session, State

ATTEMPTS_LOGGED = 5
REPAIRED_S = 0.2  # a server makes its socket at once
ACTIVITY_KEPT_S = 30.0  # how old the stored time of the last activity may become


def observed(book: Book, event: Observed, now: float) -> None:
    """Take in what the axes read now, and judge it."""
    session = book.living(event.launch_id)
    if session is None:
        return
    changes: dict[str, Any] = {}
    if event.attached is not None:
        changes["attached"] = event.attached
    if event.active_at is not None:
        changes["last_activity_at"] = max(event.active_at, session.last_activity_at or 0.0)
    facts = valid(book, event.facts)
    heard = event.active_at is not None and is_news(session)
    session = book.read_axes(session, facts, **changes)
    if heard:
        well_again(book, session, now)
    elif facts:
        weigh(book, session, now)
    else:  # nothing was read: that is no sample
        book.keep(session, durable=False)
    if event.socket_lost:
        repair(book, session, book.sessions[session.id], now)


def repair(book: Book, before: Session, after: Session, now: float) -> None:
    """Have a lost socket made anew, once for each sample, and look whether it was."""
    if after.launch is None or after.doubt is None or (before.doubt and before.doubt.sampled_at == after.doubt.sampled_at):
        return
    if before.doubt is None:
        book.log(now, after, "server.socket-lost", what="it is asked to make it anew")
    book.do(RepairSocket(after.launch))
    book.do(SetTimer(after.id, "look", now + REPAIRED_S))


def is_news(session: Session) -> bool:
    """Say whether a word of the agent's ends what is stuck.

    Not while its server hangs: only that server's answer does. Nor if the agent spoke all along: then its word is no news,
    and stuck would come and go with it.
    """
    doubt, active_at = session.doubt, session.last_activity_at
    if session.state is not State.STUCK or doubt is None or doubt.kind is DoubtKind.WEDGED:
        return False
    return active_at is None or active_at <= session.state_since - QUIET_S


def well_again(book: Book, session: Session, now: float) -> None:
    """An agent that was given up on says something."""
    book.become(replace(session, doubt=None), now, State.RUNNING, "well again: the agent was heard")


def swept(book: Book, event: Swept, now: float) -> None:
    """Take in a pass over all launches; many that look dead at once are one matter of the host."""
    gone = sum(1 for seen in event.observed if _looks_dead(valid(book, seen.facts)))
    incidents.count_inferred(book, gone, event.looked_at, now)
    for seen in event.observed:
        observed(book, seen, now)


def _looks_dead(facts: tuple[Fact, ...]) -> bool:
    """Say whether a session looks dead and nobody is sure."""
    dead = [fact for fact in facts if fact.axis in (Axis.RUNTIME, Axis.PROCESS) and fact.value == "dead"]
    return bool(dead) and not any(fact.conclusive for fact in dead)


def valid(book: Book, facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts that still say something: what was read before a gap does not, unless the kernel said it."""
    return tuple(fact for fact in facts if fact.observed_at >= book.void_before or fact.conclusive)


def weigh(book: Book, session: Session, now: float) -> None:
    """Judge a session by its axes and do what follows."""
    stuck = session.state is State.STUCK
    unborn = session.launch is None or session.launch.process is None
    if unborn or session.state not in DOUBTED or (stuck and session.doubt is None):  # the last could not be ended
        book.keep(session, durable=False)
        return
    breaker_until = incidents.breaker_until(book)
    found = judge(session.axes, session.doubt, now, session.last_activity_at, breaker_until, stuck)
    if found.look_at is not None:
        book.do(SetTimer(session.id, "look", max(found.look_at, now)))
    VERDICTS[found.verdict](book, session, found, now)


def live(book: Book, session: Session, found: Judgement, now: float) -> None:
    """It lives; a doubt that is too young to be shown is remembered."""
    changed = session.doubt != found.doubt
    if changed:
        session = replace(session, doubt=found.doubt)
    cleared = found.doubt is None and session.state is State.SUSPECT  # a younger doubt does not clear an older one
    if cleared or session.state is State.STUCK:
        book.become(session, now, State.RUNNING, "well again: every axis can be read")
    else:
        book.keep(session, durable=changed)


def suspect(book: Book, session: Session, found: Judgement, now: float) -> None:
    """It is in doubt, and says so."""
    assert found.doubt is not None
    changed = session.doubt != found.doubt
    session = replace(session, doubt=found.doubt)
    if session.state is not State.SUSPECT or changed:
        if found.doubt.attempts <= ATTEMPTS_LOGGED:
            _log_attempt(book, session, now)
        book.become(session, now, State.SUSPECT, words_of(found.doubt))
    else:
        book.keep(session, durable=False)


def stuck(book: Book, session: Session, found: Judgement, now: float) -> None:
    """It needs a human; that is said once, and stays so until the axis that caused it is well."""
    assert found.doubt is not None
    changed = session.doubt != found.doubt
    session = replace(session, doubt=found.doubt)
    if session.state is not State.STUCK:
        book.become(session, now, State.STUCK, f"{words_of(found.doubt)}; needs a human")
    else:
        book.keep(session, durable=changed)


def orphaned(book: Book, session: Session, found: Judgement, now: float) -> None:
    """Its agent outlived its pane or its server."""
    server = session.axes.get(Axis.SERVER)
    what = "server" if server is not None and server.value == "dead" and server.conclusive else "pane"
    orphan(book, replace(session, doubt=found.doubt), what, now)


def dead(book: Book, session: Session, _found: Judgement, _now: float) -> None:
    """It is dead: how it ended is gathered, and then told as its one death."""
    assert session.launch is not None
    book.keep(session, durable=False)
    book.do(Conclude(session.launch))


VERDICTS: dict[Verdict, Callable[[Book, Session, Judgement, float], None]] = {
    Verdict.LIVE: live,
    Verdict.SUSPECT: suspect,
    Verdict.STUCK: stuck,
    Verdict.ORPHANED: orphaned,
    Verdict.DEAD: dead,
}

WORDS = {
    DoubtKind.WEDGED: "its tmux server does not answer, and lives",
    DoubtKind.BLIND: "one of its axes cannot be read",
    DoubtKind.UNREADABLE: "neither its pane nor its agent can be read",
    DoubtKind.CONFIRM: "it looks dead, and is asked again",
    DoubtKind.PANE: "its pane looks gone while its agent lives",
    DoubtKind.ORACLE: "its pane is gone, and nobody can tell whether its agent is",
    DoubtKind.ORPHANED: "its agent outlived its pane",
}


def words_of(doubt: Doubt) -> str:
    """Return a doubt in words, with how often it was met."""
    times = "once" if doubt.attempts == 1 else f"{doubt.attempts} times"
    return f"{doubt.kind}: {WORDS[doubt.kind]} ({doubt.evidence}; seen so {times})"


def _log_attempt(book: Book, session: Session, now: float) -> None:
    doubt = session.doubt
    assert doubt is not None
    data = {"doubt": doubt.kind.value, "axis": doubt.axis.value, "attempts": doubt.attempts, "evidence": doubt.evidence}
    book.log(now, session, "session.doubted", **data)


def look_again(book: Book, session: Session, now: float) -> None:
    """A session that is in doubt is looked at again; one that only waits for a hangup too."""
    launch = session.launch
    if session.doubt is not None and session.state in DOUBTED and launch is not None and launch.ended_at is None:
        book.do(Look(launch))
        book.do(SetTimer(session.id, "look", now + max(HANGUP_S, PATIENCE[session.doubt.kind].look_every_s)))


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
        book.become(session, now, State.RUNNING, f"up as pid {event.process.pid}", hold=None)
    else:
        book.keep(session)


def hooked(book: Book, event: Hooked, now: float) -> None:
    """Take in what the agent said of itself; the newest word counts, and any word is a sign of life."""
    session = book.living(event.launch_id)
    if session is None or not event.hooks:
        return
    before = session.axes.get(Axis.ACTIVITY)
    said = [hook for hook in event.hooks if hook.activity]
    facts = tuple(Fact(Axis.ACTIVITY, hook.activity, "hook", hook.at, why=hook.why) for hook in said[-1:])
    active_at = max(hook.at for hook in event.hooks)
    heard = is_news(session)
    session = book.read_axes(session, facts, last_activity_at=max(active_at, session.last_activity_at or 0.0))
    after = session.axes.get(Axis.ACTIVITY)
    changed = after is not None and (before is None or before.value != after.value)
    if heard:
        well_again(book, session, now)
        return
    book.keep(session, durable=changed or active_at - book.activity_stored.get(session.id, 0.0) > ACTIVITY_KEPT_S)
    if changed:
        incidents.follow(book, session, now)


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
            book.keep(replace(session, doubt=later))


def closed(book: Book, event: Closed, _now: float) -> None:
    """Show what became of the runtime of a dead launch."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        book.keep(book.read_axes(book.close(session) if event.gone else session, event.facts))


def noted(book: Book, event: Noted, now: float) -> None:
    """Log what is of no session."""
    book.change.log.append(LogEntry(now, event.kind, data=dict(event.data)))
