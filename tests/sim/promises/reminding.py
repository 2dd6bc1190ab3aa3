"""Who is told when: on schedule while nobody reacts, not in quiet hours, and once they know only that it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Tell
from vigil.core.events import Event
from vigil.core.model.incident import Incident, NoticeEvent, Severity
from vigil.core.rules.escalation import Due

if TYPE_CHECKING:
    from tests.sim.world import World

DAY_S = 86400.0
FOR_EVER_S = 1e9
# By severity: the routes, after how long, and how often.
SCHEDULE = {
    Severity.URGENT: (("phone", 0.0, 1800.0),),
    Severity.ACTION: (("desk", 0.0, FOR_EVER_S), ("phone", 900.0, 3600.0)),
    Severity.WARNING: (("desk", 0.0, FOR_EVER_S),),
}


class Reminded(Promise):
    """Every notice of an incident comes at its time, none to who knows of it but the last, and a storm is one message."""

    name = "P12"
    LATE_S = 2.0
    STORM = 5
    GATHERED_S = 5.0
    OVER_S = 660.0  # what comes back later than that is another one
    ON_ITS_WAY_S = 1.0
    ASKED_S = 600.0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._known_at: dict[str, float] = {}
        self._handed: dict[tuple[str, str], list[float]] = {}
        self._cleared: set[str] = set()
        self._both: set[tuple[str, str]] = set()  # incidents and routes that heard of it when it was over already
        self._hushed: set[str] = set()  # incidents that were over when the last session they concerned was removed
        self._waiting: dict[str, dict[str, float]] = {}  # by route: notices that it was handed and has not begun to deliver
        self._checked: set[str] = set()
        self._rebooted_at = -1.0
        self._reminded_at: dict[str, float] = {}  # sessions, and when their questions were told again

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Tell):
                self._known_at.setdefault(effect.incident.id, self.world.engine.now)
            elif isinstance(effect, Persist):
                for entry in effect.log:
                    if entry.kind == "session.reminded":
                        self._check_question(entry.session_id or "")

    def _check_question(self, session_id: str) -> None:
        """A question is told again ten minutes after it was asked, then every thirty, whatever its agent says meanwhile."""
        session, now = self.world.daemon.machine.sessions[session_id], self.world.daemon.clock()
        asked_at = session.vitals.doing.asked[0].since
        before = self._reminded_at.get(session_id, 0.0)
        due_at = before + 3 * self.ASKED_S if before >= asked_at else asked_at + self.ASKED_S
        self.demand(now >= due_at - 0.01, f"{session.name} is told of again {due_at - now:.0f} s early")
        self._reminded_at[session_id] = now

    def started(self) -> None:
        self._reminded_at.clear()  # what was not durable is told again

    def handed_out(self, due: Due, now: float) -> None:
        incident, moment = due.incident, self.world.engine.now
        self.demand(not self._is_quiet(incident, now), f"{incident.key} is told in quiet hours")
        self._waiting.setdefault(due.route, {})[due.notice_id] = moment
        if due.event == "resolved":
            self._cleared.add(due.notice_id)
            return
        self.demand(
            incident.id not in self.world.people.acks, f"{incident.key} is told to {due.route}, and somebody knows of it"
        )
        if due.before is None and "/reminded" not in due.notice_id:
            self._handed.setdefault((incident.id, due.route), []).append(moment)

    def begun(self, route: str, dues: list[Due]) -> None:
        now, waiting = self.world.engine.now, self._waiting[route]
        storm = len(waiting) >= self.STORM
        self.demand(not storm or len(dues) == len(waiting), f"{len(waiting)} notices wait for {route}, and it gets {len(dues)}")
        for due in dues:
            handed_at = waiting.pop(due.notice_id)
            late_s = now - handed_at - self.world.deafness.since(handed_at, now)
            self.demand(late_s <= self.GATHERED_S, f"{due.notice_id} is held for {late_s:.0f} s")

    def delivered(self, due: Due) -> None:
        now = self.world.engine.now
        (self._both.discard if due.incident.resolved_at is None else self._both.add)((due.incident.id, due.route))
        known_at = self.world.people.acks.get(due.incident.id, now)
        late_s = now - known_at - self.world.deafness.since(known_at, now)
        wanted = due.event == "resolved" or late_s <= self.ON_ITS_WAY_S
        self.demand(wanted, f"{due.notice_id} is told {late_s:.0f} s after somebody said that they know")

    def killed(self) -> None:
        self._waiting.clear()

    def rebooted(self) -> None:
        """The clock may have been set: nobody can say when what is open was due."""
        self._rebooted_at = self.world.engine.now

    def written(self, change: Persist) -> None:
        for incident in change.incidents:
            if incident.resolved_at is not None and incident.id not in self._checked:
                self._checked.add(incident.id)
                self._check_schedule(incident, self._moment(incident.resolved_at))
        if change.removed:
            self._hush()

    def _hush(self) -> None:
        """What is over and concerned only who is removed by now is told to nobody any more."""
        store = self.world.store
        left = {subject for session in store.sessions.values() for subject in (session.id, session.role, session.account)}
        over = (incident for incident in store.incidents.values() if incident.resolved_at is not None)
        self._hushed |= {one.id for one in over if one.key.rpartition("/")[0] not in left | {"host"}}

    def calm(self) -> None:
        for incident in self.world.store.incidents.values():
            if incident.resolved_at is None:
                self._check_schedule(incident, self.world.engine.now)
            else:
                self._check_cleared(incident)

    def _check_schedule(self, incident: Incident, until: float) -> None:
        """While nobody reacted each step was told in time; what was due in quiet hours, when they ended."""
        begun = self._moment(incident.opened_at)
        known_at = self._known_at.get(incident.id, begun)
        if incident.reopened or incident.about or self._rebooted_at >= min(begun, known_at):
            return
        if incident.acked_at is not None:
            until = min(until, self._moment(incident.acked_at))
        for route, after_s, repeat_s in SCHEDULE[incident.severity]:
            moment = begun + after_s
            while moment + self.LATE_S < until:
                self._check_told(incident, route, max(self._loud_at(incident, moment), known_at), until)
                moment += repeat_s

    def _check_told(self, incident: Incident, route: str, due_at: float, until: float) -> None:
        if due_at + self.LATE_S >= until or self.world.deafness.since(due_at - self.LATE_S, due_at + self.LATE_S):
            return
        handed = self._handed.get((incident.id, route), [])
        told = any(-0.01 <= at - due_at <= self.LATE_S for at in handed)
        self.demand(told, f"{incident.key} is due by {route} at {due_at:.0f}, and was told at {[round(at) for at in handed]}")

    def _check_cleared(self, incident: Incident) -> None:
        """Whoever was told of it heard that it is over, unless the last it concerned was removed."""
        clock = self.world.daemon.clock()
        removed = incident.id in self._hushed or incident.resolution.endswith(" was removed")
        over_s = clock - (incident.resolved_at or clock)
        if removed or over_s < self.OVER_S or self._is_quiet(incident, clock):
            return
        for route in {
            notice.route
            for notice in incident.notices
            if notice.state == "sent" and notice.event != NoticeEvent.RESOLVED and (incident.id, notice.route) not in self._both
        }:
            told = f"{incident.id}/resolved/{route}" in self._cleared
            self.demand(told, f"{incident.key} is over since {over_s:.0f} s, and {route} was not told")

    # Quiet hours, reckoned anew

    def _moment(self, clock: float) -> float:
        return clock - self.world.daemon.offset

    def _is_quiet(self, incident: Incident, clock: float) -> bool:
        return self._loud_at(incident, self._moment(clock)) > self._moment(clock)

    def _loud_at(self, incident: Incident, moment: float) -> float:
        """Return when people may be told of something that is due at a moment."""
        night = self.world.notifier.night
        if night is None or incident.severity is Severity.URGENT or incident.severity in night.passes:
            return moment
        ahead_s = self.world.daemon.offset + night.offset_s
        since_s = (moment + ahead_s - night.from_s) % DAY_S
        long_s = (night.to_s - night.from_s) % DAY_S
        return moment + long_s - since_s if since_s < long_s else moment
