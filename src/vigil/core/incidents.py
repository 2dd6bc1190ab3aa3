"""Incidents: conditions a human should know of; each opens once, folds in what is the same, and resolves once (P12).

Those of a session follow from what it is, by a table; those of the host are said by whoever saw them. When most of the host is
hit at once there is one incident of the host instead of one for each session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vigil.core.effects import LogEntry, SetTimer, Tell
from vigil.core.escalate import SEVERITY
from vigil.core.events import Acked, Condition, Notified, Reached
from vigil.core.explain import explain
from vigil.core.incident import Incident, IncidentKind, Notice
from vigil.core.liveness import EPISODE_S
from vigil.core.model import ALIVE, After, Axis, Cause, DoubtKind, Evidence, RuntimeKind, Session, State
from vigil.core.outbox import GIVEN_UP as NOT_DELIVERED
from vigil.core.outbox import SENDING, SENT, cancelled, interrupted, uncancelled
from vigil.core.reactions import react_at, reaction_to
from vigil.core.restart import HELD

if TYPE_CHECKING:
    from vigil.core.book import Book

MASS = 5  # and over half: then it is the host's matter (DESIGN 4.2)
MASS_WINDOW_S = 1.0
SETTLE_S = 0.5
BREAKER_S = 60.0
DOWN = frozenset({State.CRASHED, State.FAILED, State.PENDING})
GIVEN_UP = frozenset({State.FAILED, State.STOPPED, State.SUCCEEDED})  # nothing brings these back by itself
NOTICES_KEPT = 100
# What comes back so soon after it ended is the same incident, and whoever was told of it has not been told yet that it is over.
# The time doubles with every one that opens within an hour of the last: what flaps slowly is told a few times and not for ever.
SAME_S = 10.0
LONGEST_SAME_S = 600.0
REMEMBERED_S = 3600.0
MARGIN_S = 1.0  # an all-clear is not sent while the word that it came back may still be on its way
EVENTS = frozenset({IncidentKind.MASS_DEATH})  # something that happened at a moment: the next one is another one


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: a kind of incident, when it holds of a session, and the host's incident that stands for it."""

    kind: IncidentKind
    holds: Callable[[Session], bool]
    why: Callable[[Session], str] = lambda session: session.why
    folded_into: IncidentKind | None = None
    of: Callable[[Session], str | None] = lambda _: None  # one for all that have this in common; None: each its own


def _is_wedged(session: Session) -> bool:
    return session.doubt is not None and session.doubt.kind is DoubtKind.WEDGED


def _is_down_by_its_server(session: Session) -> bool:
    death, hold = session.last_death, session.hold
    if hold is not None and hold.reason in HELD:  # that is why it is down by now
        return False
    return session.state in DOWN and death is not None and death.cause is Cause.SERVER_DIED and _is_last(session)


def _is_last(session: Session) -> bool:
    """Say whether a session's last death is that of its newest launch."""
    death, launch = session.last_death, session.launch
    return death is not None and launch is not None and death.launch_id == launch.id


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
        lambda s: f"{len(s.queue)} messages wait for it, and it is {s.state}: vigil start {s.name} delivers them",
    ),
    Rule(IncidentKind.SERVER_DIED, _is_down_by_its_server, folded_into=IncidentKind.MASS_DEATH),
    Rule(IncidentKind.STALLED, _is_stalled, lambda s: f"{s.stall.verdict}: {'; '.join(s.stall.reasons)}" if s.stall else ""),
    Rule(IncidentKind.NEEDS_INPUT, _waits_for_a_human, lambda s: f"waits for a human: {s.axes[Axis.ACTIVITY].why}"),
)


def follow(book: Book, session: Session, now: float) -> None:
    """Open and resolve the incidents of a session so that they say what it is."""
    for rule in RULES:
        key = key_of(rule.kind, subject_of(rule, session))
        if not rule.holds(session):
            if key in book.incidents and not _holds_of_sibling(book, rule, session):
                removed = session.after is After.REMOVE
                words = f"{session.name} {'was removed' if removed else f'is {session.state}'}"
                resolve(book, key, words, now, final=removed)
        elif key not in book.incidents and not _is_folded(book, rule, session):
            if rule.folded_into is IncidentKind.MASS_DEATH and (settles_at := _settles_at(book, session)) > now:
                book.do(SetTimer(session.id, "incidents", settles_at))
            else:
                open_incident(book, rule.kind, session, rule.why(session), now, subject_of(rule, session))
    _end_host_incidents(book, session, now)


def subject_of(rule: Rule, session: Session) -> str:
    """Return whose incident it is: the session's, or its role's."""
    return rule.of(session) or session.id


def _holds_of_sibling(book: Book, rule: Rule, session: Session) -> bool:
    """Say whether another one keeps an incident open that they have in common."""
    common = rule.of(session)
    if common is None:
        return False
    others = (other for other in book.sessions.values() if other.id != session.id and rule.of(other) == common)
    return any(map(rule.holds, others))


def _settles_at(book: Book, session: Session) -> float:
    """Return when it is clear whether a death was one of many; where there are not many it is clear at once."""
    assert session.last_death is not None
    return session.last_death.at + (SETTLE_S if len(book.sessions) >= MASS else 0.0)


def _is_folded(book: Book, rule: Rule, session: Session) -> bool:
    """Say whether the host's own incident speaks for this session."""
    host = book.incidents.get(key_of(rule.folded_into)) if rule.folded_into else None
    if host is None:
        return False
    return _is_wedged(session) if rule.folded_into is IncidentKind.STUCK else _died_in(session, host)


def forget(book: Book, session: Session, now: float) -> None:
    """Resolve what is open of a session that is removed; what it has in common with others, once none of them keeps it open."""
    common = {key_of(rule.kind, subject_of(rule, session)): rule for rule in RULES}
    for key, incident in list(book.incidents.items()):
        kept = key in common and _holds_of_sibling(book, common[key], session)
        if (incident.session_id == session.id or key in common) and not kept:
            resolve(book, key, f"{session.name} was removed", now, final=True)


def count_wedged(book: Book, session: Session, shown: bool, now: float) -> None:
    """Take note of a server that does not answer; when most of them do not, that is the host's matter."""
    if not shown or not _is_wedged(session):
        if session.id not in book.wedged:
            return
        book.wedged.discard(session.id)
    else:
        book.wedged.add(session.id)
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


def count_death(book: Book, at: float) -> None:
    """Take note of a death; when most sessions die within a second, that is the host's matter."""
    book.deaths_at.append(at)
    died = sum(1 for other in book.deaths_at if abs(other - at) <= MASS_WINDOW_S)
    if died < MASS:
        return
    living = sum(1 for s in book.sessions.values() if s.state in ALIVE and s.launch and s.launch.ended_at is None) - 1
    if died > living:  # the one that dies now is still among the living
        words = f"{died} sessions died within a second, {living} live"
        if key_of(IncidentKind.MASS_DEATH) in book.incidents:
            say_anew(book, key_of(IncidentKind.MASS_DEATH), words)
        else:
            open_incident(book, IncidentKind.MASS_DEATH, None, words, at)
        _fold(book, at)


def _fold(book: Book, now: float) -> None:
    """What was told of single sessions before it was clear how many there are is part of the host's incident."""
    host = book.incidents[key_of(IncidentKind.MASS_DEATH)]
    for incident in [i for i in book.incidents.values() if i.kind is IncidentKind.SERVER_DIED and i.session_id]:
        session = book.sessions.get(incident.session_id or "")
        if session is not None and _died_in(session, host):
            resolve(book, incident.key, f"one of many: {host.why}", now)


def count_inferred(book: Book, gone: int, looked_at: int, now: float) -> None:
    """Take note of how many looked dead in one pass: so many at once are more likely our own blindness."""
    if gone >= MASS and 2 * gone > looked_at:
        key = key_of(IncidentKind.MASS_DEATH)
        if key in book.incidents and now - book.incidents[key].opened_at > EPISODE_S:
            resolve(book, key, "it happened again", now)  # or an old one would leave the new one without a breaker
        words = f"{gone} of {looked_at} sessions look dead at once; none is charged before the kernel confirmed it"
        open_incident(book, IncidentKind.MASS_DEATH, None, words, now)


def breaker_until(book: Book) -> float:
    """Return until when nothing is concluded by inference."""
    host = book.incidents.get(key_of(IncidentKind.MASS_DEATH))
    return 0.0 if host is None else host.opened_at + BREAKER_S


def _died_in(session: Session, host: Incident) -> bool:
    death = session.last_death
    near = death is not None and -2 * MASS_WINDOW_S <= death.at - host.opened_at <= BREAKER_S
    return near and session.state in DOWN and _is_last(session)


def _end_host_incidents(book: Book, session: Session, now: float) -> None:
    """A mass death is over when none of those it hit is down or in doubt any more."""
    key = key_of(IncidentKind.MASS_DEATH)
    host = book.incidents.get(key)
    if host is None or _is_hit(session, host) or now < host.opened_at + MASS_WINDOW_S:
        return
    if not any(_is_hit(other, host) for other in book.sessions.values()):
        resolve(book, key, "every session it hit is up, or was dealt with", now)


def _is_hit(session: Session, host: Incident) -> bool:
    doubted = session.doubt is not None and session.doubt.kind in (DoubtKind.CONFIRM, DoubtKind.PANE, DoubtKind.ORACLE)
    return doubted or _died_in(session, host)


def condition(book: Book, event: Condition, now: float) -> None:
    """Open or resolve an incident of the host, as whoever saw it says."""
    key = key_of(event.kind)
    if event.holds:
        open_incident(book, event.kind, None, event.why, event.at)
    elif key in book.incidents:
        resolve(book, key, event.why, now)


def notified(book: Book, event: Notified, now: float) -> None:
    """Write down what became of a notice; what a route gave up is an incident of that route until it delivers again."""
    incident = book.find_incident(event.incident_id)
    if incident is None:
        return
    notice = event.notice
    others = tuple(_overtaken(other, notice) for other in incident.notices if other.id != notice.id)
    why = _why_unwanted(incident, notice)
    notice = uncancelled(notice, now) if why is None else cancelled(notice, why)
    incident = replace(incident, notices=(*others, notice)[-NOTICES_KEPT:])
    _keep(book, incident)
    if notice.state == SENDING:
        return
    words = {"route": notice.route, "state": notice.state, "why": notice.why, "event": notice.event}
    log(book, now, incident, "incident.notified", **words, attempts=notice.attempts, retry_at=notice.retry_at)
    book.do(Tell(incident))
    if notice.state in NOT_DELIVERED and (book.routes is None or notice.route in book.routes):
        _given_up(book, notice, now)
    elif notice.state == SENT:
        reached(book, Reached(notice.route), now)


def _overtaken(other: Notice, notice: Notice) -> Notice:
    """A repeat takes the place of the one before it that could not be delivered."""
    step = notice.id.rpartition("/")[0]
    same = other.route == notice.route and other.id.rpartition("/")[0] == step
    return cancelled(other, "the next one took its place") if same else other


def _why_unwanted(incident: Incident, notice: Notice) -> str | None:
    if notice.event == "resolved":
        return None if incident.resolved_at is not None else "it came back"
    if incident.resolved_at is not None:
        return "it is over"
    return "it was acknowledged" if incident.acked_at is not None else None


def _given_up(book: Book, notice: Notice, now: float) -> None:
    route = notice.route
    said = f": {notice.why}" if notice.why else ""
    words = f"route {route} does not deliver, after {notice.attempts} attempts{said}; vigil notify test {route} tries it"
    subject = f"route-{route}"
    before = book.incidents.get(key_of(IncidentKind.UNDELIVERED, subject))
    if before is not None:
        _keep(book, replace(before, count=before.count + 1, why=words))
    else:
        open_incident(book, IncidentKind.UNDELIVERED, None, words, now, subject, about=(route,))


def reached(book: Book, event: Reached, now: float) -> None:
    """A route delivers: what it did not deliver before is no trouble any more."""
    key = key_of(IncidentKind.UNDELIVERED, f"route-{event.route}")
    if key in book.incidents:
        resolve(book, key, f"route {event.route} delivers again", now)


def acked(book: Book, event: Acked, now: float) -> None:
    """A person knows of an incident: nobody is told of it again before it is over."""
    incident = book.find_incident(event.incident_id)
    if incident is None or incident.resolved_at is not None or incident.acked_at is not None:
        return
    notices = tuple(cancelled(notice, "it was acknowledged") for notice in incident.notices)
    incident = replace(incident, acked_at=now, acked_by=event.actor, notices=notices)
    _keep(book, incident)
    log(book, now, incident, "incident.acked", actor=event.actor)
    book.do(Tell(incident))


def take_up(book: Book, now: float) -> None:
    """A daemon took over: what was being sent or tried when the last one ended may have arrived, or been done."""
    for incident in [one for one in book.resolved.values() if (one.resolved_at or 0.0) > now]:
        _keep(
            book, replace(incident, resolved_at=now, over_at=now)
        )  # the clock was set back: nobody waits for a moment long past
    for incident in (*book.incidents.values(), *book.resolved.values()):
        notices = tuple(interrupted(notice, now) for notice in incident.notices)
        words = "the daemon ended meanwhile"
        reactions = tuple(
            replace(one, outcome="unknown", why=words) if one.outcome == "begun" else one for one in incident.reactions
        )
        if notices != incident.notices or reactions != incident.reactions:
            _keep(book, replace(incident, notices=notices, reactions=reactions))
    for incident in list(book.incidents.values()):
        plan_reaction(book, incident, now)


def plan_reaction(book: Book, incident: Incident, now: float) -> None:
    """Ask for the moment of the next reaction to an incident, if there is one."""
    reaction = reaction_to(incident, book.reactions)
    if reaction is not None and incident.acked_at is None and incident.escalated_at is None:
        book.do(SetTimer(incident.key, "react", max(now, react_at(incident, reaction))))


def key_of(kind: IncidentKind, session_id: str = "host") -> str:
    """Return what an incident is one of."""
    return f"{session_id}/{kind}"


def open_incident(
    book: Book,
    kind: IncidentKind,
    session: Session | None,
    why: str,
    now: float,
    subject: str | None = None,
    about: tuple[str, ...] = (),
) -> None:
    """Open an incident; one that is open already takes in what is new, and one that was over only just now is open again."""
    key = key_of(kind, subject or (session.id if session else "host"))
    before = book.incidents.get(key)
    if before is not None:
        if before.why != why:
            _keep(book, replace(before, count=before.count + 1, why=why))
        return
    fresh = replace(_incident(kind, session, why, now, subject), key=key, about=about)
    if session is not None:
        fresh = replace(fresh, evidence=_evidence(session))
    if kind is IncidentKind.SATURATED and session is not None:
        role = book.role_of(session)
        fresh = replace(fresh, deaths=session.deaths if role is None else role.deaths)
    incident = opened(fresh, book.last_over(key))
    if incident.reopened:
        incident = replace(incident, deaths=fresh.deaths or incident.deaths)
    _keep(book, incident)
    log(book, now, incident, "incident.opened", why=why, severity=incident.severity.value, count=incident.count)
    book.do(Tell(incident))
    plan_reaction(book, incident, now)


def opened(fresh: Incident, before: Incident | None) -> Incident:
    """Return what is open: the one before if it was over only just now; else a new one, which knows what was before it."""
    if before is None or before.resolved_at is None or fresh.opened_at - before.resolved_at > REMEMBERED_S:
        return fresh
    now = fresh.opened_at
    if before.over_at is not None and before.resolved_at <= now < before.over_at - MARGIN_S:
        return replace(
            before,
            resolved_at=None,
            resolution="",
            over_at=None,
            count=before.count + 1,
            why=fresh.why,
            reopened=before.reopened + 1,
            reopened_at=now,
            again_at=now + same_s(before),
            notices=tuple(uncancelled(notice, now) for notice in before.notices if notice.event != "resolved"),
        )
    fresh = replace(fresh, flaps=before.flaps + 1, spent=before.spent + len(before.reactions))
    # It resolved and opens again within one moment: another one all the same, with an id of its own.
    return replace(fresh, id=f"{fresh.id}-{fresh.flaps}") if fresh.id == before.id else fresh


def same_s(incident: Incident) -> float:
    """Return how soon an incident must come back to be the same one."""
    return min(LONGEST_SAME_S, SAME_S * 2.0 ** min(incident.flaps, 16))


def _evidence(session: Session) -> tuple[Evidence, ...]:
    return tuple(Evidence(proof.source, f"{proof.fact}: {proof.value}") for proof in explain(session).evidence)


def host_incident(kind: IncidentKind, why: str, at: float) -> Incident:
    """Return an incident of the host as it will be opened: whoever tells it before it is recorded tells the same one."""
    return _incident(kind, None, why, at)


def _incident(kind: IncidentKind, session: Session | None, why: str, at: float, subject: str | None = None) -> Incident:
    whose = session.id if session else subject or "host"
    return Incident(
        id=f"i-{whose}-{kind}-{int(at * 1_000_000):x}",
        key=key_of(kind, whose),
        kind=kind,
        severity=SEVERITY[kind],
        session_id=session.id if session else None,
        session=session.name if session else None,
        opened_at=at,
        why=why,
    )


def say_anew(book: Book, key: str, why: str) -> None:
    """Let an open incident say how things are now: it is the same one, and nothing more happened."""
    if book.incidents[key].why != why:
        _keep(book, replace(book.incidents[key], why=why))
        book.do(Tell(book.incidents[key]))


def remind(book: Book, key: str, why: str) -> None:
    """Let whoever was told of an open incident be told again, once: it goes on."""
    before = book.incidents.get(key)
    if before is not None:
        _keep(book, replace(before, why=why, count=before.count + 1, reminders=before.reminders + 1))
        book.do(Tell(book.incidents[key]))


def resolve(book: Book, key: str, resolution: str, now: float, final: bool = False) -> None:
    """Resolve an open incident: its condition is over; one that cannot come back is so for good."""
    before = book.incidents[key]
    resolved_at = max(now, before.opened_at)
    final = final or before.kind in EVENTS
    incident = replace(
        before,
        resolved_at=resolved_at,
        resolution=resolution,
        over_at=resolved_at if final else resolved_at + same_s(before) + MARGIN_S,
        notices=tuple(cancelled(notice, "it is over") for notice in before.notices),
    )
    _keep(book, incident)
    log(book, now, incident, "incident.resolved", resolution=resolution)
    book.do(Tell(incident))


def _keep(book: Book, incident: Incident) -> None:
    book.keep_incident(incident)


def log(book: Book, at: float, incident: Incident, kind: str, **data: Any) -> None:
    """Say in the event log what happened to an incident."""
    words = {"incident": incident.id, "kind": incident.kind.value, **data}
    book.change.log.append(LogEntry(at, kind, incident.session_id, incident.session, data=words))
