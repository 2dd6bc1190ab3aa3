"""Rules of incidents: which conditions of a session a human should know of, as a table.

One that several have in common (a role, an account) is theirs together; one that the host's own incident speaks for is not told
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vigil.core import mass
from vigil.core.counting import some
from vigil.core.effects import SetTimer
from vigil.core.escalate import is_settled
from vigil.core.incident import IncidentKind
from vigil.core.incidents import hush, key_of, open_incident, resolve
from vigil.core.model import ALIVE, After, Axis, Cause, Session, State
from vigil.core.restart import HELD

if TYPE_CHECKING:
    from vigil.core.book import Book

OF_AGENTS = frozenset({IncidentKind.NEEDS_INPUT, IncidentKind.STALLED})
GIVEN_UP = frozenset({State.FAILED, State.STOPPED, State.SUCCEEDED})  # nothing brings these back by itself


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: a kind of incident, when it holds of a session, and the host's incident that stands for it."""

    kind: IncidentKind
    holds: Callable[[Session], bool]
    why: Callable[[Session], str] = lambda session: session.why
    folded_into: IncidentKind | None = None
    of: Callable[[Session], str | None] = lambda _: None  # one for all that have this in common; None: each its own


def _is_down_by_its_server(session: Session) -> bool:
    death, hold = session.last_death, session.hold
    if hold is not None and hold.reason in HELD:  # that is why it is down by now
        return False
    return session.state in mass.DOWN and death is not None and death.cause is Cause.SERVER_DIED and mass.is_last(session)


def _waits_for_a_human(session: Session) -> bool:
    activity = session.axes.get(Axis.ACTIVITY)
    return session.state in ALIVE and activity is not None and activity.value == "waiting-human"


def _is_at(session: Session, cause: Cause) -> bool:
    """Say whether a session waits for a wall, or its living agent stands before one."""
    if session.hold is not None and session.hold.reason == cause:
        return True
    wall = session.wall
    met = wall is not None and wall.cause is cause and not wall.over and wall.at > (session.asked_at or 0.0)
    return met and session.state in ALIVE and session.launch is not None and session.launch.ended_at is None


def _wall_of(session: Session) -> str:
    wall = session.wall
    return session.why if wall is None else f"{wall.cause}: {wall.text}" + (f" ({wall.note})" if wall.note else "")


def _is_stalled(session: Session) -> bool:
    return session.state in ALIVE and session.stall is not None and session.stall.warned_at is not None


RULES = (
    Rule(IncidentKind.STUCK, lambda s: s.state is State.STUCK, folded_into=IncidentKind.STUCK),
    Rule(IncidentKind.SATURATED, lambda s: s.hold is not None and s.hold.reason == "saturated", of=lambda s: s.role),
    Rule(IncidentKind.LIMIT, lambda s: _is_at(s, Cause.LIMIT), _wall_of, of=lambda s: s.account or None),
    Rule(IncidentKind.AUTH, lambda s: _is_at(s, Cause.AUTH), _wall_of, of=lambda s: s.account or None),
    Rule(
        IncidentKind.TAINTED,
        lambda s: bool(s.conversation) and s.conversation in s.quarantined,
        lambda s: f"conversation {s.conversation} did nothing when it was resumed: its next launch begins a new one",
    ),
    Rule(
        IncidentKind.UNDELIVERED,
        lambda s: bool(s.queue) and s.state in GIVEN_UP,
        lambda s: (
            f"{some(len(s.queue), 'message waits', 'messages wait')} for it, and it is {s.state}: vigil start {s.name} delivers"
        ),
    ),
    Rule(IncidentKind.SERVER_DIED, _is_down_by_its_server, folded_into=IncidentKind.MASS_DEATH),
    Rule(IncidentKind.STALLED, _is_stalled, lambda s: f"{s.stall.verdict}: {'; '.join(s.stall.reasons)}" if s.stall else ""),
    Rule(IncidentKind.NEEDS_INPUT, _waits_for_a_human, lambda s: f"waits for a human: {s.axes[Axis.ACTIVITY].why}"),
)


def follow(book: Book, session: Session, now: float) -> None:
    """Open and resolve the incidents of a session so that they say what it is."""
    for rule in RULES:
        holds = rule.holds(session)
        if not holds and not book.incidents:
            continue
        key = key_of(rule.kind, subject_of(rule, session))
        if not holds:
            if key in book.incidents and not _holds_of_sibling(book, rule, session):
                removed = session.after is After.REMOVE
                words = f"{session.name} {'was removed' if removed else f'is {session.state}'}"
                resolve(book, key, words, now, final=removed, hushed=removed)
        elif key not in book.incidents and not is_past(rule, session) and not _is_folded(book, rule, session):
            if rule.folded_into is IncidentKind.MASS_DEATH and (settles_at := mass.settles_at(book, session)) > now:
                book.do(SetTimer(session.id, "incidents", settles_at))
            else:
                open_incident(book, rule.kind, session, rule.why(session), now, subject_of(rule, session))
    mass.end_incidents(book, session, now)


def is_past(rule: Rule, session: Session) -> bool:
    """Say whether something begins to hold only because an agent is ended, or was dead before: its last words stay."""
    return session.state is State.ENDING and rule.kind in OF_AGENTS


def subject_of(rule: Rule, session: Session) -> str:
    """Return whose incident it is: the session's, or its role's."""
    return rule.of(session) or session.id


def _holds_of_sibling(book: Book, rule: Rule, session: Session) -> bool:
    """Say whether another one keeps an incident open that they have in common."""
    return any(map(rule.holds, _siblings(book, rule, session)))


def _siblings(book: Book, rule: Rule, session: Session) -> list[Session]:
    """Return the others whose incident it would be too."""
    common = rule.of(session)
    if common is None:
        return []
    return [other for other in book.sessions.values() if other.id != session.id and rule.of(other) == common]


def _is_folded(book: Book, rule: Rule, session: Session) -> bool:
    """Say whether the host's own incident speaks for this session."""
    host = book.incidents.get(key_of(rule.folded_into)) if rule.folded_into else None
    if host is None:
        return False
    return mass.is_wedged(session) if rule.folded_into is IncidentKind.STUCK else mass.died_in(session, host)


def forget(book: Book, session: Session, now: float) -> None:
    """Resolve what is open of a session that is removed; what it has in common with others, once none of them keeps it open.

    Nobody is told anything of it from now on: whoever removed it knows, and the reason is on the timeline.
    """
    common = {key_of(rule.kind, subject_of(rule, session)): rule for rule in RULES}
    for key, incident in list(book.incidents.items()):
        kept = key in common and _holds_of_sibling(book, common[key], session)
        if (incident.session_id == session.id or key in common) and not kept:
            resolve(book, key, f"{session.name} was removed", now, final=True, hushed=True)
    own = {key for key, rule in common.items() if not _siblings(book, rule, session)}
    for incident in [one for one in book.resolved.values() if one.key in own and not is_settled(one)]:
        hush(book, incident)  # its all-clear would come after the removal
