"""Host incidents: when most sessions are hit at once, the host has one incident instead of one each (DESIGN 4.2)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from vigil.core.book import DOUBTFUL, Book
from vigil.core.handlers.incident import open_incident, resolve, say_anew
from vigil.core.model.incident import IncidentKind
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.session import ALIVE, Session
from vigil.core.rules.incident import BREAKER_S, MASS_WINDOW_S, died_in, is_hit, is_wedged, key_of
from vigil.core.rules.liveness import EPISODE_S

MASS = 5  # and over half
DEATHS_KEPT = 1000
SETTLE_S = 0.5  # of many deaths at once people hear one incident of the host, not the first few


def count_wedged(book: Book, sessions: Iterable[Session], now: float) -> None:
    """Count servers that do not answer; when most hang, open one incident of the host."""
    shown = {session.id: session.state in DOUBTFUL and is_wedged(session) for session in sessions}
    shown |= dict.fromkeys(book.change.removed, False)
    if not any(shown.values()) and book.wedged.isdisjoint(shown):
        return
    book.wedged -= shown.keys()
    book.wedged |= {session_id for session_id, hangs in shown.items() if hangs}
    key = key_of(IncidentKind.STUCK)
    if key not in book.incidents and len(book.wedged) < MASS:
        return
    servers = sum(1 for s in book.sessions.values() if s.state in ALIVE and s.spec.runtime is RuntimeKind.TMUX)
    words = f"{len(book.wedged)} of {servers} tmux servers do not answer; their agents are not touched"
    if key in book.incidents and not book.wedged:
        resolve(book, key, "every tmux server answers again", now)
    elif key in book.incidents:
        say_anew(book, key, words)
    elif 2 * len(book.wedged) > servers:
        open_incident(book, IncidentKind.STUCK, None, words, now)


def count_deaths(book: Book) -> None:
    """Count this event's charged deaths; most sessions within a second are one host incident."""
    for death in book.change.deaths:
        if death.charged:
            _count_death(book, death.at)


def _count_death(book: Book, at: float) -> None:
    insort(book.deaths_at, at)
    del book.deaths_at[:-DEATHS_KEPT]
    died = bisect_right(book.deaths_at, at + MASS_WINDOW_S) - bisect_left(book.deaths_at, at - MASS_WINDOW_S)
    if died < MASS:
        return
    living = sum(1 for s in book.sessions.values() if s.state in ALIVE and s.launch and s.launch.ended_at is None)
    if died > living:
        words = f"{died} sessions died within a second, {living} live"
        if key_of(IncidentKind.MASS_DEATH) in book.incidents:
            say_anew(book, key_of(IncidentKind.MASS_DEATH), words)
        else:
            open_incident(book, IncidentKind.MASS_DEATH, None, words, at)
        _fold(book, at)


def _fold(book: Book, now: float) -> None:
    """Resolve the incidents of single sessions that the host's incident covers now."""
    host = book.incidents[key_of(IncidentKind.MASS_DEATH)]
    for incident in [i for i in book.incidents.values() if i.kind is IncidentKind.SERVER_DIED and i.session_id]:
        session = book.sessions.get(incident.session_id or "")
        if session is not None and died_in(session, host):
            resolve(book, incident.key, f"one of many: {host.why}", now)


def count_inferred(book: Book, gone: int, looked_at: int, now: float) -> None:
    """Count sessions that look dead in one pass; too many are one host incident."""
    if gone >= MASS and 2 * gone > looked_at:
        key = key_of(IncidentKind.MASS_DEATH)
        if key in book.incidents and now - book.incidents[key].opened_at > EPISODE_S:
            resolve(book, key, "it happened again", now)  # else the new one would have no breaker
        words = f"{gone} of {looked_at} sessions look dead at once; none is charged before the kernel confirmed it"
        open_incident(book, IncidentKind.MASS_DEATH, None, words, now)


def breaker_until(book: Book) -> float:
    """Return until when a mass-death incident of the host forbids conclusions by inference."""
    # The stored incident is the breaker: it survives a restart and cannot be re-armed for ever.
    host = book.incidents.get(key_of(IncidentKind.MASS_DEATH))
    return 0.0 if host is None else host.opened_at + BREAKER_S


def settles_at(book: Book, session: Session) -> float:
    """Return when it is clear whether a death belongs to a host incident."""
    assert session.last_death is not None
    return session.last_death.at + (SETTLE_S if len(book.sessions) >= MASS else 0.0)


def end_mass_death(book: Book, sessions: Iterable[Session], now: float) -> None:
    """Resolve the host's mass death once no session that it hit is down or doubted."""
    key = key_of(IncidentKind.MASS_DEATH)
    host = book.incidents.get(key)
    if host is None or now < host.opened_at + MASS_WINDOW_S or all(is_hit(session, host) for session in sessions):
        return
    if not any(is_hit(other, host) for other in book.sessions.values()):
        resolve(book, key, "every session it hit is up, or was dealt with", now)
