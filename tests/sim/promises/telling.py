"""What humans are told: P6 and P12, and what an agent says it does."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tests.sim.promises.base import Broken, Promise
from vigil.core.effects import Effect, Persist, Tell
from vigil.core.events import Event, Hooked
from vigil.core.model import speech
from vigil.core.model.death import Cause
from vigil.core.model.incident import Incident, IncidentKind, Severity
from vigil.core.model.reading import Axis, DoubtKind
from vigil.core.model.restart import HoldReason
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.speech import Hook
from vigil.core.rules.escalation import Due

if TYPE_CHECKING:
    from tests.sim.world import World

FOR_EVER_S = 1e12


class OnTime(Promise):
    """The escalation clock is never late by more than 1 s, whatever probes, runtimes, the disk or a notifier do."""

    name = "P6"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._told: dict[str, tuple[float, float]] = {}  # when this daemon knew of an incident, and how deaf it had been

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                told = {e.incident.id for e in effects if isinstance(e, Tell)}
                for incident in effect.incidents:
                    if incident.id not in self._told and incident.resolved_at is None:
                        self.demand(incident.id in told, f"nobody is told of {incident.key}")
                        self._told[incident.id] = self._now()

    def started(self) -> None:
        self._told = dict.fromkeys(self._told, self._now())

    def _now(self) -> tuple[float, float]:
        now = self.world.engine.now
        return now, self.world.deafness.by(now)

    def handed_out(self, due: Due, now: float) -> None:
        if due.event == "opened" and due.notice_id.endswith("/0/0") and due.before is None:
            (now, deaf_s), (known_at, deaf_before_s) = self._now(), self._told.get(due.incident.id, self._now())
            late_s = now - known_at - (deaf_s - deaf_before_s) - self._quiet_s(due.incident, known_at, now)
            self.demand(late_s <= 1.0, f"{due.incident.key} is told {late_s:.1f} s late")

    def _quiet_s(self, incident: Incident, known_at: float, now: float) -> float:
        """What can wait waits until quiet hours are over; when that is, another promise knows."""
        quiet = self.world.notifier.night is not None and incident.severity is not Severity.URGENT
        return now - known_at if quiet else 0.0


class OneIncident(Promise):
    """One incident per condition: one notice when it opens, reminders on their schedule, one when it resolves."""

    name = "P12"
    FOR_EVER_S = 1e9
    SETTLED_S = 5.0
    URGENT = frozenset(
        {
            IncidentKind.SATURATED,
            IncidentKind.STUCK,
            IncidentKind.SERVER_DIED,
            IncidentKind.MASS_DEATH,
            IncidentKind.KEEPER_LOST,
        }
    )
    ACTION = frozenset(
        {
            IncidentKind.NEEDS_INPUT,
            IncidentKind.AUTH,
            IncidentKind.UNDELIVERED,
            IncidentKind.STALLED,
            IncidentKind.TAINTED,
        }
    )
    SAME_S = 600.0  # what comes back later than this is never the same one
    LEAST = 5  # so often a route that is down is tried
    MOST = 2  # so often is anybody told the same, whatever is killed

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._open: dict[str, str] = {}
        self._opened_at: dict[str, float] = {}
        self._over_at: dict[str, float] = {}
        self._over: set[str] = set()
        self._told: set[tuple[str, str]] = set()  # incidents, and routes that were tried
        self._delivered: set[str] = set()
        self._times: Counter[str] = Counter()  # how often each notice arrived
        self._delivered_at: dict[str, float] = {}
        self._reached: set[str] = set()  # routes that delivered anything
        self._slots: dict[tuple[str, str, int], str] = {}  # each place in the schedule of a route, and the notice it had
        self._recorded: set[str] = set()
        self._down: dict[str, float] = {}  # sessions that failed by their servers, and nobody was told yet

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Tell) and effect.incident.resolved_at is not None:
                self._over_at.setdefault(effect.incident.id, self.world.engine.now)

    def written(self, change: Persist) -> None:
        for incident in sorted(change.incidents, key=lambda found: found.resolved_at is None):
            self._follow(incident)
        for session in change.sessions:
            self._check(session)
            self._check_down(session)

    def _follow(self, incident: Incident) -> None:
        self._recorded |= {notice.id for notice in incident.notices if notice.state == "sent"}
        hasty = [notice.id for notice in incident.notices if notice.state == "failed" and notice.attempts < self.LEAST]
        self.demand(not hasty, f"{hasty[:1]} is given up before it was tried {self.LEAST} times")
        if incident.resolved_at is None:
            self._check_reopened(incident)
            self.demand(self._open.get(incident.key, incident.id) == incident.id, f"two incidents of {incident.key} are open")
            self._open[incident.key] = incident.id
            self._opened_at.setdefault(incident.id, self.world.engine.now)
            if incident.kind is IncidentKind.SERVER_DIED:
                self._down.pop(incident.session_id or "", None)
        elif incident.id not in self._over:
            self._over.add(incident.id)
            self._check_escalated(incident)
            if self._open.get(incident.key) == incident.id:
                del self._open[incident.key]

    def _check_reopened(self, incident: Incident) -> None:
        """What comes back at once is the same incident, and whoever knows of it was not told that it was over."""
        if incident.id not in self._over:
            return
        over_s = self.world.engine.now - self._over_at.pop(incident.id, self.world.engine.now)
        self.demand(
            incident.reopened > 0 and over_s <= self.SAME_S,
            f"{incident.key} opens again under its old id",
        )
        cleared = [notice for notice in incident.notices if "/resolved/" in notice.id and notice.state == "sent"]
        self.demand(not cleared, f"{incident.key} was called over, and comes back under its old id")
        self._over.discard(incident.id)

    def rebooted(self) -> None:
        """The clock may have been set: nobody can say how long something has waited."""
        now = self.world.engine.now
        self._opened_at = dict.fromkeys(self._opened_at, now)
        self._over_at = dict.fromkeys(self._over_at, now)

    def _check_escalated(self, incident: Incident) -> None:
        """What waited for somebody long enough was told on the phone."""
        now = self.world.engine.now
        opened_at = self._opened_at.get(incident.id, now)
        over_at = self._over_at.get(incident.id, now)  # it may have been known before it could be written
        heard_s = over_at - opened_at - self.world.deafness.since(opened_at, over_at)
        told = (incident.id, "phone") in self._told or "phone" in incident.about
        waited = (
            incident.kind in self.ACTION and heard_s > 960.0 and incident.acked_at is None and self.world.notifier.night is None
        )
        self.demand(told or not waited, f"{incident.key} waited {heard_s:.0f} s, and nobody was called")

    def _check_down(self, session: Session) -> None:
        """Who failed by its server is told of within a second, unless the whole host is: known once it is something else."""
        now, death = self.world.engine.now, session.last_death
        told = f"{session.id}/{IncidentKind.SERVER_DIED}" in self._open or f"host/{IncidentKind.MASS_DEATH}" in self._open
        if session.state is State.FAILED and death is not None and death.cause is Cause.SERVER_DIED and not told:
            self._down.setdefault(session.id, now)
        else:
            since = self._down.pop(session.id, now)
            untold_s = 0.0 if told else now - since - self.world.excuses.since(since, now)
            self.demand(untold_s <= self.SETTLED_S, f"{session.name} was down for {untold_s:.0f} s, and nobody was told")

    def _check(self, session: Session) -> None:
        """A session's incidents say what it is."""
        activity = session.vitals.axes.get(Axis.ACTIVITY)
        asks = activity is not None and activity.value == speech.Activity.WAITING_HUMAN
        alive = session.state in (State.STARTING, State.RUNNING, State.SUSPECT, State.STUCK, State.ENDING)
        self._matches(session, IncidentKind.STUCK, session.state is State.STUCK, folded=True)
        self._matches(session, IncidentKind.SATURATED, self._is_saturated(session), of=session.role)
        for kind in (IncidentKind.LIMIT, IncidentKind.AUTH):
            self._matches(session, kind, self._is_at(session, kind), of=session.account or None)
        if session.state is not State.ENDING or not asks:  # who is being ended, or was dead before that, asks nobody anew
            self._matches(session, IncidentKind.NEEDS_INPUT, alive and asks)

    def _is_at(self, session: Session, kind: IncidentKind) -> bool:
        """Say whether one of an account waits for such a wall, or has an agent that met one and lives."""
        others = self.world.store.sessions.values() if session.account else ()
        return any(map(partial(_is_before, kind), (session, *(one for one in others if one.account == session.account))))

    def _is_saturated(self, session: Session) -> bool:
        """Say whether a session was given up, or another replica of its role."""
        others = self.world.store.sessions.values() if session.role is not None else ()
        replicas = [session, *(other for other in others if other.role == session.role)]
        return any(one.hold is not None and one.hold.reason == HoldReason.SATURATED for one in replicas)

    def _matches(self, session: Session, kind: IncidentKind, holds: bool, folded: bool = False, of: str | None = None) -> None:
        is_open = f"{of or session.id}/{kind}" in self._open
        if is_open != holds and not (folded and holds and f"host/{kind}" in self._open):
            words = "is not told" if holds else "is still told"
            raise Broken(self.name, f"{session.name} is {session.state} ({session.why}): {kind} {words}")

    def handed_out(self, due: Due, now: float) -> None:
        incident = due.incident
        urgent, action = incident.kind in self.URGENT, incident.kind in self.ACTION
        wanted = {"phone"} if urgent else {"desk", "phone"} if action else {"desk"}
        wanted -= set(incident.about)
        self.demand(due.route in wanted, f"{incident.key} is told to {due.route}")
        if due.before is not None:
            self._check_retry(due, now)
            return
        if "/reminded" in due.notice_id:  # a question is reminded of on a clock of its own
            self.demand(incident.kind is IncidentKind.NEEDS_INPUT, f"{incident.key} is told again beside its ladder")
            self.demand(
                (incident.id, due.route) in self._told, f"{due.route} is reminded of {incident.key}, and never heard of it"
            )
            return
        if due.event == "resolved":
            self.demand(incident.resolved_at is not None, f"{incident.key} is called over, and is not")
            own = incident.key.startswith(f"{incident.session_id}/")
            gone = own and incident.session_id not in self.world.store.sessions
            self.demand(not gone, f"{incident.key} is called over after its session was removed")
            slot = -1
        elif due.event == "again":
            held_s = now - (incident.reopened_at or now)
            self.demand(held_s >= 10.0, f"{incident.key} is told again {held_s:.0f} s after it came back")
            slot = -1 - incident.reopened
        else:
            after_s, repeat_s = (0.0, 1800.0) if urgent else (900.0, 3600.0) if due.route == "phone" else (0.0, self.FOR_EVER_S)
            if incident.about:
                after_s = 0.0
            slot = int((now - incident.opened_at - after_s + 0.001) // repeat_s)
            self.demand(slot >= 0, f"{incident.key} is told to {due.route} early")
        place = (incident.id, due.route, slot)
        self.demand(place not in self._slots, f"{incident.key} is told to {due.route} out of turn")
        self._slots[place] = due.notice_id
        self._told.add((incident.id, due.route))

    def _check_retry(self, due: Due, now: float) -> None:
        """What could not be delivered is tried again, each time after a longer pause; what was delivered is not."""
        assert due.before is not None
        pause_s, least_s = now - due.before.at, 7.9 * 2.0 ** (due.before.attempts - 1)
        self.demand(due.before.state == "retrying", f"{due.notice_id} is {due.before.state}, and tried again")
        came_back = (due.incident.reopened_at or 0.0) >= due.before.at
        reached = due.before.revived and due.route in self._reached  # what was given up, when the route delivers again
        patient = pause_s >= least_s or due.before.unsure > 0 or came_back or reached  # what was cut short is tried at once
        self.demand(patient, f"{due.notice_id} is tried {pause_s:.0f} s after attempt {due.before.attempts}")

    def delivered(self, due: Due) -> None:
        self.demand(due.notice_id not in self._delivered, f"{due.notice_id} is told twice")
        self._times[due.notice_id] += 1
        self._reached.add(due.route)
        self.demand(self._times[due.notice_id] <= self.MOST, f"{due.notice_id} is told {self._times[due.notice_id]} times")
        self._delivered.add(due.notice_id)
        self._delivered_at[due.notice_id] = self.world.engine.now

    def killed(self) -> None:
        """What was delivered just now, or while nothing could be written, may come twice; all else is on record."""
        now, world = self.world.engine.now, self.world
        self._over_at = {id_: at for id_, at in self._over_at.items() if id_ in self._over}  # the rest was never written
        unsure = {
            notice
            for notice, at in self._delivered_at.items()
            if notice not in self._recorded and (now - at < 2.0 or world.daemon.has_backlog)
        }
        handed = {notice for notice in self._slots.values() if notice not in self._delivered}
        self._delivered -= unsure
        self._slots = {place: notice for place, notice in self._slots.items() if notice not in unsure | handed}

    def calm(self) -> None:
        for kind in (IncidentKind.KEEPER_LOST, IncidentKind.LATE_DAEMON):
            self.demand(not self.world.notifier.is_open(f"host/{kind}"), f"{kind} is over, and still told")
        for session in self.world.store.sessions.values():
            self._check(session)
            death = session.last_death
            down = session.state is State.FAILED and death is not None and death.cause is Cause.SERVER_DIED
            if f"host/{IncidentKind.MASS_DEATH}" not in self._open:
                self._matches(session, IncidentKind.SERVER_DIED, down)


def _is_before(kind: IncidentKind, session: Session) -> bool:
    wall, hold = session.wall, session.hold
    met = wall is not None and wall.cause.value == kind.value and not wall.over and wall.at > (session.asked_at or 0.0)
    lives = session.state in ALIVE and session.launch is not None and session.launch.ended_at is None
    return (hold is not None and hold.reason == kind.value) or (met and lives)


class Work:
    """What an agent is about, by what it said in its own words: what is open stays so until it is closed."""

    MODES: ClassVar = {
        "thinks": "thinking",
        "retries": "throttled",
        "waits": "waiting-timer",
        "limit": "throttled",
        "auth": "throttled",
    }
    RANKS = ("waiting-human", "throttled", "waiting-timer", "tool", "thinking", "working", "idle")

    def __init__(self) -> None:
        self._turn = False
        self._mode = ""
        self._may_pass_at = 0.0  # a wall that was met is not there any more then, or soon after
        self._tools: set[str] = set()
        self._asked: set[str] = set()

    def hear(self, meant: str, at: float) -> None:
        for part in meant.split(", "):
            verb, _, what = part.partition(" ")
            if verb in ("limit", "auth"):
                self._may_pass_at = at + 60.0 if verb == "limit" and float(what or 0.0) <= at else float(what or FOR_EVER_S)
            self._mode = self.MODES.get(verb, "")
            if verb in ("rests", "plainly"):
                self._turn, self._tools, self._asked = False, set(), set()
            elif verb == "limited":  # said plainly too, and no limit answers a request
                self._turn, self._tools, self._asked = False, set(), self._asked - {"plainly"}
            elif verb == "prompt":
                self._asked = set()
            self._turn |= verb in ("turn", "prompt", "thinks", "tool")
            if verb in ("tool", "asks"):
                (self._tools if verb == "tool" else self._asked).add(what)
            elif verb == "ended":
                self._tools.discard(what)
            if verb in ("answered", "ended"):
                self._asked.discard(what)

    def shown(self, now: float) -> set[str]:
        """Return what may be shown now."""
        passed = {self._shown("")} if self._may_pass_at <= now else set()
        return (
            passed | {self._shown(self._mode)} if self._mode == "throttled" and self._may_pass_at else {self._shown(self._mode)}
        )

    def _shown(self, mode: str) -> str:
        found = {"idle", mode}
        found |= {"waiting-human"} if self._asked else set()
        found |= {"tool"} if self._tools else set()
        found |= {"working"} if self._turn else set()
        return next(rank for rank in self.RANKS if rank in found)


class Activity(Promise):
    """What an agent said of itself is what is shown (DESIGN 4.1)."""

    name = "activity"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._work: dict[str, Work] = {}

    def hears(self, launch_id: str, said: list[tuple[Hook, str]]) -> None:
        for hook, meant in sorted(((hook, meant) for hook, meant in said if meant), key=lambda one: one[0].at):
            self._work.setdefault(launch_id, Work()).hear(meant, hook.at)

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if not isinstance(event, Hooked):
            return
        self._check_unmoved(event.launch_id)
        session = self.world.daemon.machine.of_launch(event.launch_id)
        work = self._work.get(event.launch_id)
        if session is not None and session.launch is not None and session.launch.ended_at is None and work is not None:
            shown, meant = session.vitals.axes[Axis.ACTIVITY].value, work.shown(self.world.daemon.clock())
            self.demand(shown in meant, f"{session.name} shows {shown}, its agent said {sorted(meant)}")

    def _check_unmoved(self, launch_id: str) -> None:
        """What an agent says brings back neither its pane nor a server that hangs (DESIGN 4.2)."""
        body = self.world.host.bodies.get(launch_id)
        before = self.world.store.sessions.get(launch_id.rpartition("-")[0])
        if body is None or before is None or before.vitals.doubt is None or before.state is not State.STUCK:
            return
        hangs = before.vitals.doubt.kind is DoubtKind.WEDGED and body.server is not None and body.server.stopped
        gone = before.vitals.doubt.kind is DoubtKind.ORPHANED and not body.pane_is_open
        session = self.world.daemon.known.get(before.id, before)
        well = session.state is State.RUNNING and session.state_since == self.world.daemon.clock()
        self.demand(
            not well or not (hangs or gone), f"{session.name} is well by its word, and its {before.vitals.doubt.kind} lasts"
        )
