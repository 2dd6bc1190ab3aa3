"""The machine: every event a host can have, and its handler; facts of old launches are dropped (fencing, DESIGN 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from vigil.core import events
from vigil.core.book import Book, Change
from vigil.core.effects import Effect, TimerKind
from vigil.core.events import Event, Exited, TimerFired
from vigil.core.handlers import (
    admission,
    adoption,
    charge,
    death,
    doubt,
    end,
    heartbeat,
    hold,
    incident,
    keeper,
    launch,
    message,
    notice,
    observation,
    operator,
    orphan,
    reaction,
    reap,
    remedy,
    session_incident,
    shift,
    speech,
    summary,
    takeover,
    team,
    wall,
    watchdog,
)
from vigil.core.handlers import conversation as conversations
from vigil.core.model.evidence import Evidence
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.core.model.stall import Watchdogs
from vigil.core.model.team import Role
from vigil.core.rules.stall import case
from vigil.core.rules.stall.verdict import StallFinding, classify


def timer_fired(book: Book, event: TimerFired, now: float) -> None:
    """Pass a fired timer to its handler, which checks whether it came for nothing."""
    session, role = book.sessions.get(event.session_id), book.roles.get(event.session_id)
    if session is not None:
        TIMERS[event.kind](book, session, now)
    elif role is not None:
        ROLE_TIMERS[event.kind](book, role, now)
    elif event.kind is TimerKind.REACT:
        reaction.react(book, event.session_id, now)


TIMERS: dict[TimerKind, Callable[[Book, Session, float], object]] = {
    TimerKind.HOLD: hold.hold_over,
    TimerKind.STABLE: charge.stable,
    TimerKind.LOOK: doubt.look_again,
    TimerKind.INCIDENTS: session_incident.reconsider,
    TimerKind.PULSE: heartbeat.check,
    TimerKind.DRAIN: shift.drain_timer,
    TimerKind.SILENCE: watchdog.check,
    TimerKind.PEOPLE: watchdog.see_people,
    TimerKind.MEMORY: admission.still_short,
    TimerKind.WALL: wall.wall_over,
    TimerKind.SUMMARY: summary.summarise,
}
ROLE_TIMERS: dict[TimerKind, Callable[[Book, Role, float], None]] = {
    TimerKind.SHIFT: shift.shift_timer,
    TimerKind.STEADY: charge.steady,
}

HANDLERS: dict[type[Event], Callable[[Book, Any, float], None]] = {
    events.Declared: operator.declared,
    events.Applied: team.applied,
    events.ShiftAsked: shift.shift_asked,
    events.ShiftAborted: shift.shift_aborted,
    events.MemoryRead: admission.memory_read,
    events.Withdrawn: operator.withdrawn,
    events.Asked: operator.asked,
    events.MessageQueued: message.queued,
    events.MessageTyped: message.typed,
    events.MessageSent: message.sent,
    events.Launched: launch.launched,
    events.Unordered: keeper.unordered,
    events.Interrupted: launch.interrupted,
    events.LaunchFailed: death.launch_failed,
    Exited: death.exited,
    events.Orphaned: orphan.orphaned,
    events.Ended: end.ended,
    events.Attended: end.attended,
    events.Sighted: reap.sighted,
    events.Spared: reap.spared,
    events.StrayEnded: reap.stray_ended,
    events.Recovered: adoption.recovered,
    events.Adopted: adoption.adopted,
    events.Closed: launch.closed,
    events.Observed: observation.observed,
    events.Swept: observation.swept,
    events.Found: launch.found,
    events.RuntimeEnded: launch.runtime_ended,
    events.Hooked: speech.hooked,
    events.Heard: speech.heard,
    events.Weighed: summary.weighed,
    events.WatchdogsSet: watchdog.configured,
    events.Measured: watchdog.measured,
    events.Diagnosed: watchdog.diagnosed,
    events.Stepped: remedy.stepped,
    events.KeeperHeard: keeper.heard,
    events.Gap: observation.gap,
    events.Noted: observation.noted,
    events.Condition: incident.condition,
    events.Notified: notice.notified,
    events.Acked: notice.acked,
    events.Reached: notice.reached,
    events.Configured: reaction.configured,
    events.ReactionEnded: reaction.ended,
    TimerFired: timer_fired,
    events.Resumed: takeover.resumed,
}


class Machine:
    """The machine over one host's sessions: events in, effects out."""

    def __init__(
        self, sessions: Iterable[Session] = (), open_incidents: Iterable[Incident] = (), roles: Iterable[Role] = ()
    ) -> None:
        self._book = Book(sessions, open_incidents, roles)
        self.sessions = self._book.sessions  # by their ids
        self.incidents = self._book.incidents  # the open ones, by their keys
        self.roles = self._book.roles  # by their keys
        self.by_name = self._book.by_name  # the ids of sessions

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Let the machine hand an event to its handler; return its effects, the durable first."""
        self._book.change = Change()
        HANDLERS[type(event)](self._book, event, now)
        team.follow(self._book, now)
        session_incident.follow(self._book, now)
        return self._book.change.effects()

    @property
    def changed(self) -> dict[str, Session | None]:
        """The sessions that the machine's last event changed, by id; None for a removed one."""
        return self._book.change.shown

    def judge(self, launch_id: str, evidence: Evidence, now: float) -> StallFinding | None:
        """Have the machine judge a silent launch by this evidence, without keeping the finding."""
        session = self._book.living(launch_id)
        if session is None or not case.is_watched(session):
            return None
        return classify(watchdog.case_for(self._book, session, evidence, now))

    def checked_at(self, session_id: str) -> float | None:
        return self._book.checked_at.get(session_id)

    @property
    def watchdogs(self) -> Watchdogs:
        return self._book.watchdogs

    def find(self, name: str) -> Session | None:
        session_id = self.by_name.get(name)
        return None if session_id is None else self.sessions[session_id]

    def owner_of(self, agent: str, conversation: str, but: str = "") -> Session | None:
        """Ask the machine which other session is in an agent's conversation now."""
        return conversations.owner_of(self._book, agent, conversation, but)

    def of_launch(self, launch_id: str) -> Session | None:
        """Ask the machine for a launch's session; an old launch has none (fencing)."""
        return self._book.of_launch(launch_id)
