"""Reactions: what Vigil may do about an incident before it calls a person; never past a person, progress or doubt (P2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from vigil.core.model.death import Confidence
from vigil.core.model.incident import HIBERNATE, PROMPT, RESTART, RUN, Incident, IncidentKind, Reaction
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.speech import Activity
from vigil.core.rules.quiet_hours import is_of_team
from vigil.core.rules.stall.remedy import SENSORS, WINDOWS
from vigil.core.rules.wall import REASONS

ENDS = frozenset({RESTART, HIBERNATE})  # what lives
BUSY = frozenset({Activity.STARTING, Activity.WORKING, Activity.THINKING, Activity.TOOL})
EARLY_S = 600.0  # so long a reaction waits for a second finding
LOOK_AGAIN_S = 1.0
LEFT_ALONE = frozenset({State.STOPPED, State.SUCCEEDED, State.PARKED})
# The kinds each may answer. Never a prompt into a question, nor an end of what is stuck: too little is known of it.
FOR: dict[str, frozenset[IncidentKind]] = {
    PROMPT: frozenset({IncidentKind.STALLED, IncidentKind.TAINTED}),
    RESTART: frozenset({IncidentKind.STALLED, IncidentKind.TAINTED, IncidentKind.SATURATED, IncidentKind.SERVER_DIED}),
    HIBERNATE: frozenset({IncidentKind.STALLED, IncidentKind.TAINTED, IncidentKind.NEEDS_INPUT}),
    RUN: frozenset(IncidentKind),
}


@dataclass(frozen=True, slots=True)
class ReactionQuestion:
    session: Session
    do: str

    @property
    def alive(self) -> bool:
        """Say whether a reaction would disturb a living session."""
        return self.session.state in ALIVE

    @property
    def ends(self) -> bool:
        """Say whether a reaction would end a living session."""
        return self.do in ENDS and self.alive


class ReactionRefusal(NamedTuple):
    why: str
    holds: Callable[[ReactionQuestion], bool]


def _is_busy(session: Session) -> bool:
    """Say whether an agent is too busy for a reaction: it works without a stall."""
    return session.vitals.shows(Axis.ACTIVITY) in BUSY and session.vitals.warned is None


def _is_unsure(session: Session) -> bool:
    """Say whether a stall is too unsure for a reaction to end its session (P2)."""
    stall = session.vitals.warned
    return stall is not None and (stall.confidence is Confidence.UNKNOWN or stall.independent < SENSORS)


def _is_found_once(session: Session) -> bool:
    return session.vitals.warned is not None and session.vitals.warned.samples < WINDOWS


def _waits_for_a_human(session: Session) -> bool:
    return bool(session.vitals.doing.asked) or session.vitals.shows(Axis.ACTIVITY) == Activity.WAITING_HUMAN


def _is_unclear(session: Session) -> bool:
    unread = session.vitals.shows(Axis.PROCESS) in (None, AxisValue.UNKNOWN, AxisValue.FAILED)
    unheard = session.vitals.shows(Axis.SERVER) not in (None, AxisValue.ALIVE)
    return session.state in (State.SUSPECT, State.STUCK) or unread or unheard


REFUSALS = (  # The first row that holds decides.
    ReactionRefusal("it is being ended", lambda case: case.session.state is State.ENDING),
    ReactionRefusal("a person is attached to it", lambda case: case.session.vitals.attached > 0),
    ReactionRefusal("it is not meant to run", lambda case: case.session.state in LEFT_ALONE),
    ReactionRefusal("a launch now would meet the same wall", lambda case: case.session.waits_for in REASONS),
    ReactionRefusal("it does not run", lambda case: case.do != RESTART and not case.alive),
    ReactionRefusal("it is starting", lambda case: case.session.state is State.STARTING),
    ReactionRefusal("what it is cannot be told", lambda case: case.alive and _is_unclear(case.session)),
    ReactionRefusal("it is busy", lambda case: case.alive and _is_busy(case.session)),
    ReactionRefusal("it waits for a person", lambda case: case.do == PROMPT and _waits_for_a_human(case.session)),
    ReactionRefusal("what is the matter with it is not sure enough", lambda case: case.ends and _is_unsure(case.session)),
    ReactionRefusal("that it does not get on was found only once", lambda case: case.ends and _is_found_once(case.session)),
)


def reaction_to(incident: Incident, reactions: tuple[Reaction, ...]) -> Reaction | None:
    """Return the configured reaction to an incident; a team's own goes first."""
    matching = [one for one in reactions if one.kind is incident.kind and (one.team is None or is_of_team(incident, one.team))]
    return min(matching, key=lambda one: one.team is None, default=None)


def why_not(session: Session | None, do: str) -> str | None:
    """Return why a reaction is refused; None if it may run."""
    if do == RUN:
        return None
    if session is None:
        return "its session is gone"
    return next((row.why for row in REFUSALS if row.holds(ReactionQuestion(session, do))), None)


def is_early(incident: Incident, session: Session | None, do: str, now: float) -> bool:
    """Say whether a reaction waits: a stall found only once ends no session yet (P2)."""
    if session is None or not ReactionQuestion(session, do).ends or not _is_found_once(session):
        return False
    return not _is_unsure(session) and now - incident.opened_at < EARLY_S


def react_at(incident: Incident, reaction: Reaction) -> float:
    last = incident.reactions[-1].at + reaction.every_s if incident.reactions else 0.0
    return max(incident.opened_at + reaction.after_s, last)


def is_used_up(incident: Incident, reaction: Reaction) -> bool:
    """Say whether a reaction's budget is used up, earlier returns of its incident included."""
    return incident.spent + len(incident.reactions) >= reaction.budget
