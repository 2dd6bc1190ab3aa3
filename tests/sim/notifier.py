"""The simulated way to a human: the real ladder says what is due, routes of ours carry it, or fail to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vigil.core.escalate import Due, Ladder, Step, due_notices, next_at
from vigil.core.events import Notified
from vigil.core.model import Incident, Notice, Severity

if TYPE_CHECKING:
    from tests.sim.world import World

LADDERS = (
    Ladder((Step("phone", 0.0, 1800.0),), Severity.URGENT),
    Ladder((Step("desk"), Step("phone", 900.0, 3600.0)), Severity.ACTION),
    Ladder((Step("desk"),), Severity.WARNING),
)
DELIVERY_S = 0.2


class Notifier:
    """The escalation clock of one daemon's life: it shares nothing with loop, store and probes (P6)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.down = False  # a matter of the route, so it outlives the daemon
        self._forget()

    def _forget(self) -> None:
        self._known: dict[str, Incident] = {}
        self._handed: dict[str, dict[str, Notice]] = {}
        self._alarm: dict[str, float] = {}

    def begin(self) -> None:
        """A new daemon knows what is stored and nothing else."""
        self._forget()

    def tell(self, incident: Incident) -> None:
        """Take the newest version of an incident."""
        known = self._known.get(incident.id)
        if known is not None and known.resolved_at is not None and incident.resolved_at is None:
            return  # that version was overtaken
        self._known[incident.id] = incident
        self._plan(incident.id)

    def is_open(self, key: str) -> bool:
        """Say whether an incident of this key is being told."""
        return any(incident.key == key and incident.resolved_at is None for incident in self._known.values())

    def _seen(self, incident_id: str) -> Incident:
        """Return an incident as if what was handed out in this life had come back already."""
        incident = self._known[incident_id]
        handed = self._handed.get(incident_id)
        if not handed:
            return incident
        recorded = {notice.id for notice in incident.notices}
        missing = tuple(notice for notice in handed.values() if notice.id not in recorded)
        return replace(incident, notices=incident.notices + missing) if missing else incident

    def _plan(self, incident_id: str) -> None:
        world = self._world
        now = world.daemon.clock()
        coming = next_at(self._seen(incident_id), LADDERS, now)
        if coming is None:
            self._alarm.pop(incident_id, None)
        elif self._alarm.get(incident_id) != coming:
            self._alarm[incident_id] = coming
            world.daemon.later(max(0.0, coming - now), self._fire, incident_id, coming)

    def _fire(self, incident_id: str, planned: float) -> None:
        if self._alarm.get(incident_id) != planned:
            return
        del self._alarm[incident_id]
        world = self._world
        now = world.daemon.clock()
        for due in due_notices(self._seen(incident_id), LADDERS, now):
            self._handed.setdefault(incident_id, {})[due.notice_id] = Notice(due.notice_id, due.route, "sent", now)
            world.promises.handed_out(due, now)
            world.daemon.later(DELIVERY_S, self._deliver, due)
        self._plan(incident_id)

    def _deliver(self, due: Due) -> None:
        world = self._world
        state = "failed" if self.down else "sent"
        world.say("notice", due.event, due.route, due.incident.key, state)
        if state == "sent":
            world.promises.delivered(due)
        world.daemon.feed(Notified(due.incident.id, Notice(due.notice_id, due.route, state, world.daemon.clock())))
