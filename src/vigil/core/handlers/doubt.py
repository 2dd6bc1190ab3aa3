"""Doubt: the liveness table has judged a session's axes, and this acts on its verdict (DESIGN 4.2)."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.book import DOUBTED, Book
from vigil.core.effects import Conclude, Look, RepairSocket, SetTimer, TimerKind
from vigil.core.handlers import host_incident
from vigil.core.handlers.orphan import orphan, tell_of_server
from vigil.core.handlers.transition import become
from vigil.core.model.reading import Axis, AxisValue, Doubt, DoubtKind
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.rules.liveness import DEAD, HANGUP_S, PATIENCE, QUIET_S, Judgement, LifeVerdict, judge
from vigil.words import times

ATTEMPTS_LOGGED = 5
REPAIRED_S = 0.2  # a server makes its socket at once
UNMOVED = frozenset({DoubtKind.WEDGED, DoubtKind.ORPHANED})  # an agent's words do not end these


def weigh(book: Book, session: Session, now: float) -> None:
    """Ask the liveness table whether a session is in doubt, and act on its verdict."""
    stuck = session.state is State.STUCK
    unborn = session.launch is None or session.launch.process is None
    if unborn or session.state not in DOUBTED:
        book.keep(session, durable=False)
        return
    breaker_until = host_incident.breaker_until(book)
    found = judge(session.vitals.axes, session.vitals.doubt, now, session.last_activity_at, breaker_until, stuck)
    if stuck and session.vitals.doubt is None and found != DEAD:  # it could not be ended: only its death is news
        book.keep(session, durable=False)
        return
    if found.look_at is not None:
        book.do(SetTimer(session.id, TimerKind.LOOK, max(found.look_at, now)))
    VERDICTS[found.verdict](book, session, found, now)


def live(book: Book, session: Session, found: Judgement, now: float) -> None:
    """On the verdict alive: end the doubt, or remember one too young to show."""
    changed = session.vitals.doubt != found.doubt
    if changed:
        session = with_vitals(session, doubt=found.doubt)
    cleared = found.doubt is None and session.state is State.SUSPECT  # a younger doubt does not clear an older one
    if cleared or session.state is State.STUCK:
        become(book, session, now, State.RUNNING, "well again: every axis can be read")
    else:
        book.keep(session, durable=changed)


def suspect(book: Book, session: Session, found: Judgement, now: float) -> None:
    assert found.doubt is not None
    changed = session.vitals.doubt != found.doubt
    session = with_vitals(session, doubt=found.doubt)
    if session.state is not State.SUSPECT or changed:
        if found.doubt.attempts <= ATTEMPTS_LOGGED:
            doubt = found.doubt
            data = {"doubt": doubt.kind.value, "axis": doubt.axis.value, "attempts": doubt.attempts, "evidence": doubt.evidence}
            book.log(now, session, "session.doubted", **data)
        become(book, session, now, State.SUSPECT, words_of(found.doubt))
    else:
        book.keep(session, durable=False)


def stuck(book: Book, session: Session, found: Judgement, now: float) -> None:
    """Show a session whose doubt lasted too long as stuck, until its cause is well."""
    assert found.doubt is not None
    before, session = session.vitals.doubt, with_vitals(session, doubt=found.doubt)
    if _server_is_dead(session):
        session = tell_of_server(book, session, now)
    if session.state is not State.STUCK:
        become(book, session, now, State.STUCK, f"{words_of(found.doubt)}; needs a human")
    else:  # one more look is not worth a write
        book.keep(session, durable=before is None or replace(before, sampled_at=found.doubt.sampled_at) != found.doubt)


def orphaned(book: Book, session: Session, found: Judgement, now: float) -> None:
    """On the verdict orphaned: show the doubt of an agent that outlived pane or server."""
    what = "server" if _server_is_dead(session) else "pane"
    orphan(book, with_vitals(session, doubt=found.doubt), what, now)


def _server_is_dead(session: Session) -> bool:
    server = session.vitals.axes.get(Axis.SERVER)
    return server is not None and server.value == AxisValue.DEAD and server.conclusive


def dead(book: Book, session: Session, found: Judgement, now: float) -> None:
    """On the verdict dead: ask how it ended; an inferred death stays a doubt meanwhile."""
    assert session.launch is not None
    if found.doubt is not None and (found.doubt.attempts > 1 or session.state is not State.RUNNING):
        suspect(book, session, found, now)
    else:
        book.keep(with_vitals(session, doubt=found.doubt or session.vitals.doubt), durable=False)
    # Conclude asks how it ended: a death recorded here would say `unobserved`.
    book.do(Conclude(session.launch))


VERDICTS: dict[LifeVerdict, Callable[[Book, Session, Judgement, float], None]] = {
    LifeVerdict.LIVE: live,
    LifeVerdict.SUSPECT: suspect,
    LifeVerdict.STUCK: stuck,
    LifeVerdict.ORPHANED: orphaned,
    LifeVerdict.DEAD: dead,
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
    """Put a doubt into words for a session's state, with how often it was seen."""
    return f"{doubt.kind}: {WORDS[doubt.kind]} ({doubt.evidence}; seen so {times(doubt.attempts)})"


def look_again(book: Book, session: Session, now: float) -> None:
    """Look again at a session that is in doubt, or waits for a hangup."""
    launch = session.launch
    if session.vitals.doubt is not None and session.state in DOUBTED and launch is not None and launch.ended_at is None:
        book.do(Look(launch))
        book.do(SetTimer(session.id, TimerKind.LOOK, now + max(HANGUP_S, PATIENCE[session.vitals.doubt.kind].look_every_s)))


def repair(book: Book, before: Session, after: Session, now: float) -> None:
    """When a lost socket causes doubt: have its server make it anew, once per sample."""
    known, doubt = before.vitals.doubt, after.vitals.doubt
    if after.launch is None or doubt is None or (known and known.sampled_at == doubt.sampled_at):
        return
    if known is None:
        book.log(now, after, "server.socket-lost", what="it is asked to make it anew")
    book.do(RepairSocket(after.launch))
    book.do(SetTimer(after.id, TimerKind.LOOK, now + REPAIRED_S))


def is_news(session: Session) -> bool:
    """Say whether an agent's word ends the doubt for which its session is stuck.

    Not while its server hangs or its pane is gone. Nor if the agent spoke all along: stuck would come and go with its words."""
    doubt, active_at = session.vitals.doubt, session.last_activity_at
    if session.state is not State.STUCK or doubt is None or doubt.kind in UNMOVED:
        return False
    return active_at is None or active_at <= session.state_since - QUIET_S


def well_again(book: Book, session: Session, now: float) -> None:
    become(book, with_vitals(session, doubt=None), now, State.RUNNING, "well again: the agent was heard")
