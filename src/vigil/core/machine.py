"""The machine: every event a host can have, and what is to be done about it (DESIGN 3).

Pure. `handle` changes the book and returns effects; the first is always what must be durable before the rest is done. Facts of
another launch than the current one are dropped (fencing), so nothing old ever speaks for something new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from vigil.core import (
    asked,
    dying,
    ending,
    hearing,
    incidents,
    launching,
    messages,
    notices,
    observing,
    reacting,
    reaping,
    recovering,
    shifts,
    teams,
    waiting,
    waking,
    watching,
)
from vigil.core.book import GRACE_S, Book, Change
from vigil.core.effects import Effect
from vigil.core.events import (
    Acked,
    Adopted,
    Applied,
    Asked,
    Attended,
    Closed,
    Condition,
    Configured,
    Declared,
    Diagnosed,
    Ended,
    Event,
    Exited,
    Found,
    Gap,
    Heard,
    Hooked,
    Interrupted,
    Launched,
    LaunchFailed,
    Measured,
    MemoryRead,
    MessageQueued,
    MessageSent,
    MessageTyped,
    Noted,
    Notified,
    Observed,
    Orphaned,
    Reached,
    ReactionEnded,
    Recovered,
    Resumed,
    RuntimeEnded,
    ShiftAborted,
    ShiftAsked,
    Sighted,
    Spared,
    Stepped,
    Swept,
    TimerFired,
    WatchdogsSet,
    Weighed,
    Withdrawn,
)
from vigil.core.evidence import Evidence
from vigil.core.incident import Incident
from vigil.core.model import Session
from vigil.core.patience import Watchdogs
from vigil.core.roles import Role
from vigil.core.stall import Finding, classify

__all__ = ["GRACE_S", "HANDLERS", "Machine"]

HANDLERS: dict[type[Event], Callable[[Book, Any, float], None]] = {
    Declared: asked.declared,
    Applied: teams.applied,
    ShiftAsked: shifts.shift_asked,
    ShiftAborted: shifts.shift_aborted,
    MemoryRead: launching.memory_read,
    Withdrawn: asked.withdrawn,
    Asked: asked.asked,
    MessageQueued: messages.queued,
    MessageTyped: messages.typed,
    MessageSent: messages.sent,
    Launched: launching.launched,
    Interrupted: launching.interrupted,
    LaunchFailed: dying.launch_failed,
    Exited: dying.exited,
    Orphaned: dying.orphaned,
    Ended: ending.ended,
    Attended: launching.attended,
    Sighted: reaping.sighted,
    Spared: reaping.spared,
    Recovered: reaping.recovered,
    Adopted: reaping.adopted,
    Closed: observing.closed,
    Observed: observing.observed,
    Swept: observing.swept,
    Found: observing.found,
    RuntimeEnded: observing.runtime_ended,
    Hooked: hearing.hooked,
    Heard: hearing.heard,
    Weighed: observing.weighed,
    WatchdogsSet: watching.configured,
    Measured: watching.measured,
    Diagnosed: watching.diagnosed,
    Stepped: recovering.stepped,
    Gap: observing.gap,
    Noted: observing.noted,
    Condition: incidents.condition,
    Notified: notices.notified,
    Acked: notices.acked,
    Reached: notices.reached,
    Configured: reacting.configured,
    ReactionEnded: reacting.ended,
    TimerFired: waiting.timer_fired,
    Resumed: waiting.resumed,
}


class Machine:
    """All sessions of one host, and the policy over them."""

    def __init__(
        self, sessions: Iterable[Session] = (), open_incidents: Iterable[Incident] = (), roles: Iterable[Role] = ()
    ) -> None:
        self._book = Book(sessions, open_incidents, roles)

    @property
    def sessions(self) -> dict[str, Session]:
        """Every session, by its id."""
        return self._book.sessions

    @property
    def incidents(self) -> dict[str, Incident]:
        """Every open incident, by its key."""
        return self._book.incidents

    @property
    def roles(self) -> dict[str, Role]:
        """Every role, by its key."""
        return self._book.roles

    @property
    def by_name(self) -> dict[str, str]:
        """The ids of sessions, by their names."""
        return self._book.by_name

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Return what is to be done about an event, in order; what must be durable comes first."""
        self._book.change = Change()
        HANDLERS[type(event)](self._book, event, now)
        teams.follow(self._book, now)
        return self._book.change.effects()

    @property
    def changed(self) -> dict[str, Session | None]:
        """The sessions that the last event made others of, by their ids; None for one that is no more."""
        return self._book.change.shown

    def judge(self, launch_id: str, evidence: Evidence, now: float) -> Finding | None:
        """Return what would be found of a launch by this evidence; nothing is kept of it."""
        session = self._book.living(launch_id)
        if session is None or not watching.is_watched(session):
            return None
        return classify(watching.case_for(self._book, session, evidence, now))

    def checked_at(self, session_id: str) -> float | None:
        """Return when the silence of a session is looked at next."""
        return self._book.checked_at.get(session_id)

    @property
    def watchdogs(self) -> Watchdogs:
        """What the configuration says of silence, as far as that was told."""
        return self._book.watchdogs

    def find(self, name: str) -> Session | None:
        """Return the session of exactly this name."""
        session_id = self.by_name.get(name)
        return None if session_id is None else self.sessions[session_id]

    def owner_of(self, agent: str, conversation: str, but: str = "") -> Session | None:
        """Return the session that is in an agent's conversation now; but one."""
        return waking.owner_of(self._book, agent, conversation, but)

    def of_launch(self, launch_id: str) -> Session | None:
        """Return the session whose current launch this is; an old launch has none (fencing)."""
        return self._book.of_launch(launch_id)
