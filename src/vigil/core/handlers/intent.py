"""Intents: what we mean to do to a launch, durable before its first signal (P8)."""

from __future__ import annotations

from vigil.core.book import GRACE_S, Book
from vigil.core.effects import ReapEnded
from vigil.core.model.death import Cause, Intent, IntentVerb
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.sighting import ReapOutcome, ReapVerdict

INTENT_LASTS_S = 600.0
REACTION = "reaction"  # the actor of a configured reaction to an incident
BY_POLICY = frozenset({Cause.POLICY, Cause.UNHEALTHY, Cause.STALLED})  # these spare what a person uses (P2)


def spares_people(intent: Intent | None) -> bool:
    """Say whether this intent must wait while a person uses the launch (P2)."""
    return intent is not None and intent.cause in BY_POLICY


def tell_outcome(book: Book, intent: Intent | None, outcome: ReapOutcome, why: str) -> None:
    """Tell the sweep behind an intent what became of the launch, if one waits."""
    if intent is not None and intent.ticket:
        book.do(ReapEnded(intent.ticket, intent.launch_id, outcome, why))


def voided(intent: Intent | None, now: float) -> Intent | None:
    """Return an intent that is over: an end within its grace is still its doing."""
    return None if intent is None else replace(intent, void_from=min(intent.void_from or now + GRACE_S, now + GRACE_S))


def intend(
    book: Book,
    session: Session,
    verb: IntentVerb,
    cause: Cause,
    actor: str,
    reason: str,
    now: float,
    verdict: ReapVerdict | None = None,
    ticket: str = "",
) -> Intent:
    """Record an intent: what Vigil means to do, for whom, why; a second joins it."""
    assert session.launch is not None
    before = session.vitals.intent
    begun = before if before is not None and before.launch_id == session.launch.id and before.void_from is None else None
    intent = Intent(
        id=f"{session.launch.id}-{verb}",
        session_id=session.id,
        launch_id=session.launch.id,
        verb=verb,
        cause=cause,
        actor=actor,
        reason=reason,
        # The first signal may be out: the second command must not make its death a crash.
        at=now if begun is None else begun.at,
        target=session.launch.process,
        until=now + INTENT_LASTS_S,
        kind=None if verdict is None else verdict.kind,
        why="" if verdict is None else verdict.evidence[0],
        ticket=ticket if begun is None else ticket or begun.ticket,
    )
    book.change.intents.append(intent)
    return intent
