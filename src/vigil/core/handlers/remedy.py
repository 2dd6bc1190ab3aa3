"""Remedies: a stalled agent gets one after the other, each recorded before it runs and checked before the next.

`rules/stall/remedy` says what forbids one (P2). An end here is charged (P4, P8), unless the agent had finished and lingered."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.book import GRACE_S, Book
from vigil.core.effects import CloseInput, EndChild, EndLaunch, Interrupt, SetTimer, TimerKind
from vigil.core.events import Stepped
from vigil.core.handlers.intent import intend, voided
from vigil.core.handlers.transition import become
from vigil.core.model.death import Cause, Intent, IntentVerb
from vigil.core.model.evidence import Child
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.model.stall import Stall, Thresholds
from vigil.core.rules.stall.case import Silence
from vigil.core.rules.stall.remedy import REMEDIES, Remedy, RemedySight, hung, kept_by, next_step
from vigil.core.rules.stall.verdict import StallFinding, StallVerdict

TREATED = frozenset({State.STARTING, State.RUNNING})
VERBS = {
    Remedy.CHILD: IntentVerb.STALL_CHILD,
    Remedy.INTERRUPT: IntentVerb.STALL_INTERRUPT,
    Remedy.STDIN: IntentVerb.STALL_STDIN,
    Remedy.END: IntentVerb.STALL,
}
PEOPLE_S = 2.0  # a sweep comes only every 15


def treat(book: Book, session: Session, case: Silence, found: StallFinding, now: float) -> Session:
    """Try the next remedy on a stalled agent, or keep why none is tried."""
    stall = session.vitals.stall
    assert stall is not None and session.launch is not None
    sight = RemedySight(session, found.verdict, found.confidence, found.independent, stall.samples, case.silent_s, case.limits)
    kept = kept_by(sight)
    if kept:
        if waits_for_people(session, case.limits):
            book.do(SetTimer(session.id, TimerKind.PEOPLE, now + PEOPLE_S))
        return book.keep(with_vitals(session, stall=replace(stall, kept=kept)), durable=False)
    child = hung(case, found.verdict)
    step = next_step(found.verdict, stall.step, session.launch.reads_input, child)
    assert step is not None
    reason = f"{found.verdict}: {'; '.join(found.reasons)}"
    stall = replace(stall, step=step, stepped_at=now, samples=0, kept="")  # `samples=0`: two new windows before the next
    session = book.keep(with_vitals(session, stall=stall))
    what = f"{child.name} (pid {child.process.pid})" if step is Remedy.CHILD and child is not None else session.name
    book.log(now, session, "session.remedy", step=step.value, what=what, verdict=found.verdict.value, why=reason)
    return STEPS[step](book, session, stall, child, reason, now)


def _end_child(book: Book, session: Session, _stall: Stall, child: Child | None, reason: str, now: float) -> Session:
    """As a remedy, end the child that hangs; if its agent dies, that is ours."""
    assert child is not None and session.launch is not None
    intent = _intend(book, session, Remedy.CHILD, f"{child.name} (pid {child.process.pid}): {reason}", now)
    book.do(EndChild(session.launch, child.process, GRACE_S))
    return book.keep(with_vitals(session, intent=voided(intent, now)))


def _end(book: Book, session: Session, stall: Stall, _child: Child | None, reason: str, now: float) -> Session:
    """As the last remedy, end the launch (TERM, grace, KILL), unless a person uses it."""
    assert session.launch is not None
    # Else `on-failure` would do the finished work again.
    done = stall.verdict == StallVerdict.LIMBO and not session.vitals.trail.failed
    cause = Cause.FINISHED if done else Cause.STALLED
    intent = intend(book, session, IntentVerb.STALL, cause, "policy", reason, now)
    book.do(EndLaunch(session.launch, GRACE_S, unless_attended=True))
    return become(book, session, now, State.ENDING, f"ended: {reason}", hold=None, after=None, intent=intent)


STEPS: dict[Remedy, Callable[[Book, Session, Stall, Child | None, str, float], Session]] = {
    Remedy.CHILD: _end_child,
    Remedy.INTERRUPT: lambda book, session, _s, _c, reason, now: _ask(book, session, Remedy.INTERRUPT, Interrupt, reason, now),
    Remedy.STDIN: lambda book, session, _s, _c, reason, now: _ask(book, session, Remedy.STDIN, CloseInput, reason, now),
    Remedy.END: _end,
}


def _ask(book: Book, session: Session, step: Remedy, effect: type[Interrupt | CloseInput], reason: str, now: float) -> Session:
    assert session.launch is not None
    intent = _intend(book, session, step, reason, now)
    book.do(effect(session.launch))
    return book.keep(with_vitals(session, intent=intent))


def _intend(book: Book, session: Session, step: Remedy, reason: str, now: float) -> Intent:
    return intend(book, session, VERBS[step], Cause.STALLED, "policy", reason, now)


def waits_for_people(session: Session, limits: Thresholds) -> bool:
    """When a stalled agent is treated: say whether its remedy waits for people to leave."""
    stall = session.vitals.stall
    return session.vitals.attached > 0 and stall is not None and stall.verdict in REMEDIES and limits.stall_auto_kill


def spared(book: Book, session: Session, why: str, now: float) -> None:
    """Take back a remedy because a person uses the session; it begins anew later (P2)."""
    vitals, stall = session.vitals, session.vitals.stall
    assert stall is not None
    book.log(now, session, "session.spared", verb=VERBS[Remedy(stall.step)].value, why=why)
    stall = replace(stall, step="", stepped_at=None, kept=why)
    book.keep(with_vitals(session, stall=stall, intent=voided(vitals.intent, now), attached=max(1, vitals.attached)))
    book.do(SetTimer(session.id, TimerKind.PEOPLE, now + PEOPLE_S))


def stepped(book: Book, event: Stepped, now: float) -> None:
    """Log what became of a remedy; the next look shows whether it helped."""
    session = book.of_launch(event.launch_id)
    if session is not None:
        book.log(now, session, "session.remedied", step=event.step, ok=event.ok, why=event.why)
