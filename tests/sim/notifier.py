"""The simulated way to a human: the real ladder says what is due, routes of ours gather and carry it, or fail to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vigil.core.events import Notified
from vigil.core.model.incident import Incident, Ladder, LadderStep, Notice, NoticeState, Quiet, Severity, Telling
from vigil.core.rules import storm
from vigil.core.rules.escalation import Due, due_notices, next_at
from vigil.core.rules.notice import Attempt, RoutePatience, begun, fate_of, why_unwanted

if TYPE_CHECKING:
    from tests.sim.world import World

LADDERS = (
    Ladder((LadderStep("phone", 0.0, 1800.0),), Severity.URGENT),
    Ladder((LadderStep("desk"), LadderStep("phone", 900.0, 3600.0)), Severity.ACTION),
    Ladder((LadderStep("desk"),), Severity.WARNING),
)
TELLING = Telling(LADDERS, routes=("phone", "desk"))
PATIENCE = RoutePatience(attempts=5, pause_s=10.0)
DELIVERY_S = 0.2
MOMENT_S = 1e-6
NIGHTS = 0.4  # of all worlds have quiet hours
Handed = tuple[float, Due, Notice]


@dataclass(frozen=True)
class Night:
    """Quiet hours of a world."""

    from_s: float
    to_s: float
    offset_s: float
    passes: frozenset[Severity]

    @property
    def rule(self) -> Quiet:
        """What the ladder knows of them."""
        return Quiet(self.from_s, self.to_s, self.passes, lambda _at: self.offset_s)


class Notifier:
    """The escalation clock of one daemon's life: it shares nothing with loop, store and probes (P6)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.down = False  # a matter of the route, so it outlives the daemon
        self.night = self._draw_night()
        self._telling = TELLING if self.night is None else replace(TELLING, quiet=(self.night.rule,))
        self._forget()

    def _draw_night(self) -> Night | None:
        chances = self._world.chances("night")
        if chances.random() >= NIGHTS:
            return None
        from_s, to_s = chances.choice(((79200.0, 25200.0), (0.0, 21600.0), (50400.0, 54000.0)))
        passes = chances.choice((frozenset(), frozenset({Severity.URGENT}), frozenset({Severity.ACTION})))
        return Night(from_s, to_s, chances.choice((0.0, 7200.0, -18000.0)), passes)

    def _forget(self) -> None:
        self._known: dict[str, Incident] = {}
        self._handed: dict[str, dict[str, Notice]] = {}
        self._alarm: dict[str, float] = {}
        self._waiting: dict[str, deque[Handed]] = {}  # by route
        self._busy: set[str] = set()

    def begin(self) -> None:
        """A new daemon knows what is stored and nothing else."""
        self._forget()

    def tell(self, incident: Incident) -> None:
        """Take the newest version of an incident."""
        known = self._known.get(incident.id)
        if known is not None and _age(known) > _age(incident):
            return  # that version was overtaken
        self._known[incident.id] = incident
        self._plan(incident.id)

    def is_open(self, key: str) -> bool:
        """Say whether an incident of this key is being told."""
        return any(incident.key == key and incident.resolved_at is None for incident in self._known.values())

    def last(self, key: str) -> Incident | None:
        """Return the newest incident of a key."""
        found = (incident for incident in self._known.values() if incident.key == key)
        return max(found, key=lambda incident: (incident.opened_at, incident.reopened), default=None)

    def _seen(self, incident_id: str) -> Incident:
        """Return an incident as if what was handed out in this life had come back already."""
        incident = self._known[incident_id]
        handed = self._handed.get(incident_id)
        if not handed:
            return incident
        recorded = {notice.id: notice.attempts for notice in incident.notices}
        missing = {id_: notice for id_, notice in handed.items() if notice.attempts > recorded.get(id_, 0)}
        kept = tuple(notice for notice in incident.notices if notice.id not in missing)
        return replace(incident, notices=(*kept, *missing.values())) if missing else incident

    def _plan(self, incident_id: str) -> None:
        world = self._world
        now = world.daemon.clock()
        coming = next_at(self._seen(incident_id), self._telling, now)
        if coming is None:
            self._alarm.pop(incident_id, None)
        elif self._alarm.get(incident_id) != coming:
            self._alarm[incident_id] = coming
            world.daemon.later(max(0.0, coming - now), self._fire, incident_id, coming)

    def _fire(self, incident_id: str, planned: float) -> None:
        if self._alarm.get(incident_id) != planned:
            return
        del self._alarm[incident_id]
        world, life = self._world, self._world.daemon.life
        now = world.daemon.clock()
        for due in due_notices(self._seen(incident_id), self._telling, now):
            before = due.before or Notice(
                due.notice_id, due.route, NoticeState.SENDING, now, event=due.event, attempts=0, rung=due.rung
            )
            notice = begun(before, now, due.incident.resolved_at is not None)
            self._handed.setdefault(incident_id, {})[due.notice_id] = replace(notice, state=NoticeState.SENT)
            world.promises.handed_out(due, now)
            self._waiting.setdefault(due.route, deque()).append((world.engine.now, due, notice))
            self._gather(due.route)
            if life != world.daemon.life:  # it was killed while it wrote that down: nothing goes on from here
                return
        self._plan(incident_id)

    def _gather(self, route: str) -> None:
        """Wait for what comes with a notice, then begin: with one, or with all of a storm."""
        waiting, world = self._waiting[route], self._world
        if not waiting or route in self._busy:
            return
        left_s = storm.gathered_at(waiting[0][0], waiting[-1][0], len(waiting)) - world.engine.now
        if left_s > MOMENT_S:
            world.daemon.later(left_s, self._gather, route)
            return
        self._busy.add(route)
        batch = [waiting.popleft() for _ in range(storm.together(len(waiting)))]
        world.promises.begun(route, [due for _, due, _ in batch])
        self._begin(route, batch)

    def _begin(self, route: str, batch: list[Handed]) -> None:
        """Write down what is about to be sent, unless nobody needs it any more; that may wait behind others."""
        world, life, sent = self._world, self._world.daemon.life, []
        for _, due, notice in batch:
            newest = self._known[due.incident.id]
            wanted = why_unwanted(due.event, due.route, newest) is None
            if newest.resolved_at is not None:  # one notice says both
                due, notice = replace(due, incident=newest), replace(notice, over=True)
            world.daemon.feed(Notified(due.incident.id, notice if wanted else replace(notice, state=NoticeState.CANCELLED)))
            if life != world.daemon.life:
                return
            if wanted:
                sent.append((due, notice))
        world.daemon.later(DELIVERY_S, self._deliver_all, route, sent)

    def _deliver_all(self, route: str, sent: list[tuple[Due, Notice]]) -> None:
        life = self._world.daemon.life
        for due, notice in sent:
            self._deliver(due, notice)
            if life != self._world.daemon.life:
                return
        self._busy.discard(route)
        self._gather(route)

    def _deliver(self, due: Due, notice: Notice) -> None:
        world = self._world
        attempt = Attempt(False, "nobody answers") if self.down else Attempt(True)
        jitter = world.chances(f"jitter-{due.notice_id}-{notice.attempts}").uniform(-1.0, 1.0)
        fate = fate_of(notice, attempt, PATIENCE, world.daemon.clock(), jitter)
        world.say("notice", due.event, due.route, due.incident.key, fate.state)
        if attempt.ok:
            world.promises.delivered(due)
            world.people.was_told(due)
        world.daemon.feed(Notified(due.incident.id, fate))


def _age(incident: Incident) -> tuple[int, bool]:
    """An incident resolves, and may come back."""
    return incident.reopened, incident.resolved_at is not None
