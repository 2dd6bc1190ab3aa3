"""Incidents: which conditions of a session, role or account a human should know, and when one returns as the same (P12)."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from vigil.core.model.death import Cause
from vigil.core.model.incident import Incident, IncidentKind, NoticeEvent
from vigil.core.model.reading import Axis, DoubtKind
from vigil.core.model.replace import replace
from vigil.core.model.restart import HoldReason
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.speech import Activity
from vigil.core.rules.escalation import SEVERITY
from vigil.core.rules.notice import uncancelled
from vigil.core.rules.restart import WALLS
from vigil.words import some

# What comes back so soon is the same incident: its all-clear has not been sent yet.
# It doubles with each that opens within an hour of the last: people hear of a slow flap a few times, not for ever.
SAME_S = 10.0
LONGEST_SAME_S = 600.0
REMEMBERED_S = 3600.0
MARGIN_S = 1.0  # the all-clear waits for a reopening that may be on its way
EVENTS = frozenset({IncidentKind.MASS_DEATH})  # a moment, not a condition: the next one is another one
MASS_WINDOW_S = 1.0
BREAKER_S = 60.0
DOWN = frozenset({State.CRASHED, State.FAILED, State.PENDING})
OF_AGENTS = frozenset({IncidentKind.NEEDS_INPUT, IncidentKind.STALLED})
GIVEN_UP = frozenset({State.FAILED, State.STOPPED, State.SUCCEEDED})  # nothing brings these back by itself


def key_of(kind: IncidentKind, session_id: str = "host") -> str:
    """Return the key of an incident; at most one is open per key."""
    return f"{session_id}/{kind}"


def incident_of(kind: IncidentKind, session: Session | None, why: str, at: float, subject: str | None = None) -> Incident:
    """Return a new incident, of the host without a session; equal facts give equal ids."""
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


def opened(fresh: Incident, before: Incident | None) -> Incident:
    """Decide whether an incident reopens the last one, ended just now, or is new."""
    if before is None or before.resolved_at is None or fresh.opened_at - before.resolved_at > REMEMBERED_S:
        return fresh
    now = fresh.opened_at
    if before.over_at is not None and before.resolved_at <= now < before.over_at - MARGIN_S:
        return replace(
            before,
            resolved_at=None,
            resolution="",
            over_at=None,
            owed=False,
            count=before.count + 1,
            why=fresh.why,
            reopened=before.reopened + 1,
            reopened_at=now,
            again_at=now + same_s(before),
            notices=tuple(uncancelled(notice, now) for notice in before.notices if notice.event != NoticeEvent.RESOLVED),
        )
    fresh = replace(fresh, flaps=before.flaps + 1, spent=before.spent + len(before.reactions))
    # It resolved and opens in the same moment: it still needs an id of its own.
    return replace(fresh, id=f"{fresh.id}-{fresh.flaps}") if fresh.id == before.id else fresh


def same_s(incident: Incident) -> float:
    """Return how soon an incident must come back to be the same one."""
    return min(LONGEST_SAME_S, SAME_S * 2.0 ** min(incident.flaps, 16))


def is_wedged(session: Session) -> bool:
    """Say whether a session's condition for an incident is a server that does not answer."""
    return session.vitals.doubt is not None and session.vitals.doubt.kind is DoubtKind.WEDGED


def died_in(session: Session, host: Incident) -> bool:
    """Say whether the host's mass-death incident is why a session is down."""
    death = session.last_death
    near = death is not None and -2 * MASS_WINDOW_S <= death.at - host.opened_at <= BREAKER_S
    return near and session.state in DOWN and is_last(session)


def is_last(session: Session) -> bool:
    """Say whether the death behind an incident is that of a session's newest launch."""
    death, launch = session.last_death, session.launch
    return death is not None and launch is not None and death.launch_id == launch.id


def is_hit(session: Session, host: Incident) -> bool:
    """Say whether the host's mass-death incident is why a session is down or doubted."""
    doubt = session.vitals.doubt
    doubted = doubt is not None and doubt.kind in (DoubtKind.CONFIRM, DoubtKind.PANE, DoubtKind.ORACLE)
    return doubted or died_in(session, host)


class IncidentRule(NamedTuple):
    kind: IncidentKind
    holds: Callable[[Session], bool]
    why: Callable[[Session], str] = lambda session: session.why
    folded_into: IncidentKind | None = None
    of: Callable[[Session], str | None] = lambda _: None  # sessions with an equal value share one; None: each its own


def _is_down_by_its_server(session: Session) -> bool:
    death = session.last_death
    walled = session.waits_for in WALLS.values()  # that keeps it down by now
    return session.state in DOWN and not walled and death is not None and death.cause is Cause.SERVER_DIED and is_last(session)


def _waits_for_a_human(session: Session) -> bool:
    return session.state in ALIVE and session.vitals.shows(Axis.ACTIVITY) == Activity.WAITING_HUMAN


def _is_at(session: Session, cause: Cause) -> bool:
    """Say whether a session's condition for an incident is a wall that it met."""
    if session.waits_for is WALLS[cause]:
        return True
    wall = session.wall
    met = wall is not None and wall.cause is cause and not wall.over and wall.at > (session.asked_at or 0.0)
    return met and session.state in ALIVE and session.launch is not None and session.launch.ended_at is None


def _wall_of(session: Session) -> str:
    wall = session.wall
    return session.why if wall is None else f"{wall.cause}: {wall.text}" + (f" ({wall.note})" if wall.note else "")


def _stall_of(session: Session) -> str:
    stall = session.vitals.stall
    return f"{stall.verdict}: {'; '.join(stall.reasons)}" if stall is not None else ""


RULES = (
    IncidentRule(IncidentKind.STUCK, lambda s: s.state is State.STUCK, folded_into=IncidentKind.STUCK),
    IncidentRule(IncidentKind.SATURATED, lambda s: s.waits_for is HoldReason.SATURATED, of=lambda s: s.role),
    IncidentRule(IncidentKind.LIMIT, lambda s: _is_at(s, Cause.LIMIT), _wall_of, of=lambda s: s.account or None),
    IncidentRule(IncidentKind.AUTH, lambda s: _is_at(s, Cause.AUTH), _wall_of, of=lambda s: s.account or None),
    IncidentRule(
        IncidentKind.TAINTED,
        lambda s: bool(s.conversation) and s.conversation in s.quarantined,
        lambda s: f"conversation {s.conversation} did nothing when it was resumed: its next launch begins a new one",
    ),
    IncidentRule(
        IncidentKind.UNDELIVERED,
        lambda s: bool(s.queue) and s.state in GIVEN_UP,
        lambda s: (
            f"{some(len(s.queue), 'message waits', 'messages wait')} for it, and it is {s.state}: vigil start {s.name} delivers"
        ),
    ),
    IncidentRule(IncidentKind.SERVER_DIED, _is_down_by_its_server, folded_into=IncidentKind.MASS_DEATH),
    IncidentRule(IncidentKind.STALLED, lambda s: s.state in ALIVE and s.vitals.warned is not None, _stall_of),
    IncidentRule(
        IncidentKind.NEEDS_INPUT, _waits_for_a_human, lambda s: f"waits for a human: {s.vitals.axes[Axis.ACTIVITY].why}"
    ),
)


_FIELDS = attrgetter(
    *("state", "after", "hold", "launch", "last_death", "vitals.doubt", "vitals.stall", "wall", "asked_at"),
    *("conversation", "quarantined", "queue", "account", "role"),
)


def conditions_of(session: Session) -> tuple[Any, Any]:
    """Return the conditions that decide a session's incidents: while they are equal, none changes."""
    return session.vitals.axes.get(Axis.ACTIVITY), _FIELDS(session)


def is_past(rule: IncidentRule, session: Session) -> bool:
    """Say whether an incident's condition only shows what an agent left when Vigil ended it."""
    if session.state is not State.ENDING or rule.kind not in OF_AGENTS:
        return False
    stall = session.vitals.stall
    warned_at = stall.warned_at if rule.kind is IncidentKind.STALLED and stall is not None else None
    return warned_at is None or warned_at > session.state_since  # a warning from before the end is no past


def subject_of(rule: IncidentRule, session: Session) -> str:
    """Return the subject of an incident: the id of its session, role or account."""
    return rule.of(session) or session.id
