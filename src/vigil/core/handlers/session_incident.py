"""Session incidents: the machine has them follow once, at an event's end; handlers only write sessions (P12)."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import SetTimer, TimerKind
from vigil.core.handlers import host_incident
from vigil.core.handlers.incident import hush, open_incident, resolve, say_anew
from vigil.core.model.incident import IncidentKind
from vigil.core.model.restart import After
from vigil.core.model.session import Session
from vigil.core.rules.escalation import is_settled
from vigil.core.rules.incident import RULES, IncidentRule, conditions_of, died_in, is_past, is_wedged, key_of, subject_of


def follow(book: Book, now: float) -> None:
    """Have sessions' incidents follow from what this event changed; unchanged sessions cost one comparison."""
    sessions = _looked_at(book)
    if not (sessions or book.change.removed or book.change.anew):
        return
    host_incident.count_deaths(book)
    for session in book.change.removed.values():
        _forget(book, session, now)
    host_incident.count_wedged(book, sessions, now)
    for session in sessions:
        _follow_one(book, session, now)
    for key, words in book.change.anew.items():
        if key in book.incidents:
            say_anew(book, key, words)
    host_incident.end_mass_death(book, sessions, now)


def _looked_at(book: Book) -> list[Session]:
    """Return the sessions whose incidents may follow from this event, those in new states first."""
    change, moved, found = book.change, [], list(book.change.reconsidered)
    for session_id, before in change.before.items():
        session = change.shown[session_id]
        if session is not None and before is not None and before.state is not session.state:
            moved.append(session_id)
        elif session is not None and (before is None or conditions_of(before) != conditions_of(session)):
            found.append(session_id)
    return [book.sessions[session_id] for session_id in dict.fromkeys([*moved, *found]) if session_id in book.sessions]


def _follow_one(book: Book, session: Session, now: float) -> None:
    """Open and resolve one session's incidents by the table."""
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
            if rule.folded_into is IncidentKind.MASS_DEATH and (settles_at := host_incident.settles_at(book, session)) > now:
                book.do(SetTimer(session.id, TimerKind.INCIDENTS, settles_at))
            else:
                open_incident(book, rule.kind, session, rule.why(session), now, subject_of(rule, session))


def reconsider(book: Book, session: Session, _now: float) -> None:
    """When it is clear what a death was: have its session's incidents follow again."""
    book.reconsider([session])


def _holds_of_sibling(book: Book, rule: IncidentRule, session: Session) -> bool:
    """Say whether another session keeps a session's shared incident open."""
    return any(map(rule.holds, _siblings(book, rule, session)))


def _siblings(book: Book, rule: IncidentRule, session: Session) -> list[Session]:
    """Return the other sessions that share a session's incident."""
    common = rule.of(session)
    if common is None:
        return []
    return [other for other in book.sessions.values() if other.id != session.id and rule.of(other) == common]


def _is_folded(book: Book, rule: IncidentRule, session: Session) -> bool:
    """Say whether an incident of the host covers this session's incident."""
    host = book.incidents.get(key_of(rule.folded_into)) if rule.folded_into else None
    if host is None:
        return False
    return is_wedged(session) if rule.folded_into is IncidentKind.STUCK else died_in(session, host)


def _forget(book: Book, session: Session, now: float) -> None:
    """Resolve a removed session's incidents without a notice, unless other sessions share and keep them."""
    common = {key_of(rule.kind, subject_of(rule, session)): rule for rule in RULES}
    for key, incident in list(book.incidents.items()):
        kept = key in common and _holds_of_sibling(book, common[key], session)
        if (incident.session_id == session.id or key in common) and not kept:
            resolve(book, key, f"{session.name} was removed", now, final=True, hushed=True)
    own = {key for key, rule in common.items() if not _siblings(book, rule, session)}
    for incident in [one for one in book.resolved.values() if one.key in own and not is_settled(one)]:
        hush(book, incident)
