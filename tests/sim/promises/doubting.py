"""Doubt: P5 and P7, and what DESIGN 4.2 says of when it is shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from tests.sim.promises.base import Broken, Promise
from vigil.core.effects import Conclude, Effect, Persist, Spawn
from vigil.core.events import Event, Gap, MemoryRead, Observed, Orphaned, Swept
from vigil.core.model.reading import Axis, Fact, Reading
from vigil.core.model.restart import HoldReason
from vigil.core.model.session import Session, State

if TYPE_CHECKING:
    from tests.sim.world import World


class WayOut(Promise):
    """Every non-terminal state has a way out, and says what it waits for and until when."""

    name = "P5"
    BOUND_S: ClassVar = {
        State.PENDING: 90.0,
        State.STARTING: 120.0,
        State.SUSPECT: 330.0,
        State.ENDING: 75.0,
        State.CRASHED: 90.0,
        State.FAILED: 90.0,  # where it waits for its trial
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._since: dict[str, tuple[Session, float, float]] = {}  # as it is, until when it may be, if somebody can act
        self._is_short = False  # memory is

    def written(self, change: Persist) -> None:
        for session_id in change.removed:
            self._since.pop(session_id, None)
        for session in change.sessions:
            self.demand(session.why, f"{session.name} is {session.state} and does not say why")
            if session.state in (State.PENDING, State.CRASHED):
                self.demand(session.hold is not None, f"{session.name} is {session.state} and waits for nothing")
                self._check_cold(session)
            before = self._since.get(session.id)
            if before is None or (before[0].state, before[0].hold) != (session.state, session.hold):
                self._check(session.id)
                self._since[session.id] = (session, self._deadline(session), self.world.excuses.by(self.world.engine.now))

    def _check_cold(self, session: Session) -> None:
        """Only after a boot, and only a role that does not start by itself, waits for a person."""
        before = self._since.get(session.id)
        known = before is not None and before[0].hold == session.hold
        if known or session.hold is None or session.hold.reason != HoldReason.COLD_START:
            return
        role = self.world.store.roles.get(session.role or "")
        right = role is not None and not role.spec.autostart and self.world.host.boots > 1
        self.demand(right, f"{session.name} waits for a person, though it starts by itself")

    def _deadline(self, session: Session) -> float:
        hold, wait_s = session.hold, self.BOUND_S.get(session.state, 0.0)
        if session.state is State.FAILED and (hold is None or hold.until is None):
            wait_s = math.inf
        elif hold is not None and hold.reason in (HoldReason.AUTH, HoldReason.COLD_START):
            wait_s = math.inf  # until a person acts
        elif hold is not None and hold.reason == HoldReason.MEMORY and self._is_short:
            wait_s = math.inf  # until there is some
        elif hold is not None and hold.until is not None:
            unbounded = hold.reason in (HoldReason.LIMIT, HoldReason.SATURATED)
            longest_s = math.inf if unbounded else session.spec.restart.cap_s * (1 + session.spec.restart.jitter)
            wait_s += min(longest_s, max(0.0, hold.until - self.world.daemon.clock()))
        return self.world.engine.now + wait_s

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, MemoryRead):
            was_short, self._is_short = self._is_short, event.room is not None
            if was_short and not self._is_short:
                self._wait_anew("memory")

    def rebooted(self) -> None:
        """The clock may have been set, and a limit ends at a moment of it, as a trial begins at one."""
        self._wait_anew("limit")
        self._wait_anew("saturated")

    def _wait_anew(self, reason: str) -> None:
        now = self.world.engine.now
        for session_id, (session, _, _) in list(self._since.items()):
            if session.hold is not None and session.hold.reason == reason:
                self._since[session_id] = (session, self._deadline(session), self.world.excuses.by(now))

    def _check(self, session_id: str) -> None:
        before = self._since.get(session_id)
        if before is not None and before[0].state in self.BOUND_S:
            session, deadline, excused_s = before
            now = self.world.engine.now
            late_s = now - deadline - (self.world.excuses.by(now) - excused_s)
            self.demand(late_s <= 0, f"{session.name} is {session.state} ({session.why}) for {late_s:.0f} s too long")

    def calm(self) -> None:
        for session_id in list(self._since):
            self._check(session_id)


class OnlyReading(Promise):
    """Reading never concludes and never writes a death; `failed to find out` is never `dead`."""

    name = "P7"

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Observed | Swept):
            for effect in effects:
                if isinstance(effect, Spawn):
                    role = self.world.daemon.roles.get(effect.session.role or "")
                    shifted = role is not None and role.shift is not None and effect.session.index in role.shift.new
                    self.demand(shifted, "a reading launches something")  # a shift goes on when its time has come
                if isinstance(effect, Persist):
                    self.demand(not effect.deaths, "a reading records a death")


class Shown(Promise):
    """A doubt has a reason, is shown in time, and needs a human in time: neither earlier nor later than DESIGN 4.2 says."""

    name = "doubt"
    WELL = ("alive", "stopped")
    UNREAD = ("unknown", "failed")
    WEDGED_S, BLIND_S, UNREADABLE_S, EPISODE_S = 10.0, 60.0, 60.0, 300.0
    LOOK_S = 11.0  # every 5 s; a server that hangs takes its deadline, and a pass may come in between
    OVER_S = 20.0  # what the kernel saw end is gathered and told within a pass or two
    TAKEN_UP_S = 5.0  # a new daemon may count one sample for the time it was away
    SLACK_S = 45.0  # a pass every 15 s, a ping on every second one

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._read: dict[str, dict[Axis, str]] = {}  # what was told of each launch last
        self._since: dict[tuple[str, str], float] = {}  # since when something has been wrong without a break
        self._killed_at = 0.0
        self._late: set[str] = set()
        self._stuck: set[str] = set()
        self._told_at: dict[str, float] = {}
        self._gone: dict[str, list[float]] = {}  # when a launch looked dead, by inference

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Gap):
            self._shift(event.lasted_s)
        elif isinstance(event, Orphaned):
            self._note(event.launch_id, "ill", True)
            self._read.setdefault(event.launch_id, {})[Axis.RUNTIME] = "ended"
            self._check_orphan(event.launch_id)
        elif isinstance(event, Observed):
            self._take_in(event)
        elif isinstance(event, Swept):
            for seen in event.observed:
                self._take_in(seen)
        by_reading = isinstance(event, Observed | Swept)
        for effect in effects:
            if isinstance(effect, Persist):
                for session in effect.sessions:
                    self._check(session, by_reading)
            elif isinstance(effect, Conclude):
                self._check_conclusion(effect.launch.id)
        for seen in (event,) if isinstance(event, Observed) else event.observed if isinstance(event, Swept) else ():
            self._check_shown(seen.launch_id)

    def killed(self) -> None:
        self._killed_at = self.world.engine.now

    def started(self) -> None:
        self._shift(self.world.engine.now - self._killed_at - self.TAKEN_UP_S)
        stored = [session for session in self.world.store.sessions.values() if session.launch is not None]
        self._stuck = {session.launch.id for session in stored if session.launch and session.state is State.STUCK}
        for session in stored:
            self._take_up(session)

    def _take_up(self, session: Session) -> None:
        """A new daemon knows of a doubt what was durable of it, and of what was read, and nothing else."""
        launch_id = session.launch.id if session.launch else ""
        self._read[launch_id] = {axis: self._value(reading) for axis, reading in session.vitals.axes.items()}
        if session.vitals.doubt is None:
            self._forget(launch_id)
            return
        since = self.world.engine.now - (session.vitals.doubt.sampled_at - session.vitals.doubt.since) - self.TAKEN_UP_S
        self._since[launch_id, "ill"] = since
        for what in ("wedged", "hung", "unreadable"):
            if (launch_id, what) in self._since:
                self._since[launch_id, what] = max(since, self._since[launch_id, what])

    @staticmethod
    def _value(read: Fact | Reading) -> str:
        return "ended" if read.value == "dead" and read.conclusive else read.value

    def _shift(self, by_s: float) -> None:
        """While nobody looked no doubt grew older."""
        self._since = {key: since + by_s for key, since in self._since.items()}

    def _take_in(self, seen: Observed) -> None:
        launch_id, now = seen.launch_id, self.world.daemon.clock()
        if any(now - fact.observed_at > 2.0 for fact in seen.facts):
            self._late.add(launch_id)  # nobody can say since when
        self._check_looked_at(launch_id)
        read = self._read.setdefault(launch_id, {})
        for fact in seen.facts:
            if read.get(fact.axis) != "ended":  # what the kernel saw end does not come back
                read[fact.axis] = self._value(fact)
        if not seen.facts:
            return
        process, runtime = read.get(Axis.PROCESS, "unknown"), read.get(Axis.RUNTIME, "unknown")
        server = read.get(Axis.SERVER, "alive")
        self._note(launch_id, "ill", any(value not in self.WELL for value in (process, runtime, server)))
        self._note(launch_id, "wedged", server == "wedged" and process in self.WELL and runtime in self.WELL)
        self._note(launch_id, "hung", server == "wedged")
        self._note(launch_id, "over", process == "ended")
        self._note(launch_id, "unreadable", process in self.UNREAD and runtime not in self.WELL)
        looks_dead = process == "dead" or (runtime == "ended" and process not in (*self.WELL, *self.UNREAD))
        if not looks_dead:
            self._gone.pop(launch_id, None)
        else:
            self._gone.setdefault(launch_id, []).append(self.world.engine.now)

    def _check_looked_at(self, launch_id: str) -> None:
        """What is in doubt is looked at every few seconds, not only on every pass."""
        now, before = self.world.engine.now, self._told_at.get(launch_id)
        session = self.world.daemon.known.get(launch_id.rpartition("-")[0])
        doubted = (
            session is not None and session.state is State.SUSPECT and now > self.world.senses.late_until.get(session.id, 0.0)
        )
        if before is not None and doubted and session is not None and launch_id not in self._late:
            doubted_s = self.world.daemon.clock() - session.state_since
            unseen_s = min(now - before, doubted_s) - self.world.excuses.since(before, now)
            self.demand(unseen_s <= self.LOOK_S, f"{session.name} is in doubt, and was not looked at for {unseen_s:.0f} s")
        self._told_at[launch_id] = now

    def _note(self, launch_id: str, what: str, holds: bool) -> None:
        if not holds:
            self._since.pop((launch_id, what), None)
        else:
            self._since.setdefault((launch_id, what), self.world.engine.now)

    def _lasted_s(self, launch_id: str, what: str) -> float:
        since = self._since.get((launch_id, what))
        return 0.0 if since is None else self.world.engine.now - since

    def _check(self, session: Session, by_reading: bool) -> None:
        """Not too early."""
        launch_id = session.launch.id if session.launch else ""
        was_stuck = launch_id in self._stuck
        (self._stuck.add if session.state is State.STUCK else self._stuck.discard)(launch_id)
        if session.vitals.doubt is None:
            self._forget(launch_id)
        elif was_stuck and session.state is not State.STUCK:  # what caused it is well; what is wrong now began now
            self._forget(launch_id)
            self._note(launch_id, "ill", True)
        elif by_reading and launch_id not in self._late and session.state_since == self.world.daemon.clock():
            ill_s = self._lasted_s(launch_id, "ill")
            told = f"{session.name} is {session.state} after {ill_s:.0f} s ({session.why})"
            self.demand((launch_id, "ill") in self._since, f"{told} for no reason")
            wedged = (launch_id, "wedged") in self._since
            if session.state is State.SUSPECT and wedged:
                self.demand(ill_s >= self.WEDGED_S - 0.1, f"{told}: too early")
            elif session.state is State.STUCK:
                hopeless = (launch_id, "hung") in self._since or (launch_id, "unreadable") in self._since
                self.demand(ill_s >= (self.UNREADABLE_S if hopeless else self.EPISODE_S) - 10.0, f"{told}: too early")

    def _check_shown(self, launch_id: str) -> None:
        """Not too late."""
        session = self.world.daemon.known.get(launch_id.rpartition("-")[0])
        if session is None or session.launch is None or session.launch.id != launch_id or session.launch.ended_at is not None:
            return
        over_s = self._lasted_s(launch_id, "over")
        if over_s > self.OVER_S:
            over_s -= self.world.excuses.since(self.world.engine.now - over_s, self.world.engine.now)
            words = f"{session.name} is {session.state}, and its end was read {over_s:.0f} s ago"
            self.demand(over_s <= self.OVER_S, words)
        if session.state in (State.ENDING, State.STUCK) or launch_id in self._late or (launch_id, "over") in self._since:
            return
        ill_s = self._lasted_s(launch_id, "ill")
        worst_s = max(self._lasted_s(launch_id, "wedged"), self._lasted_s(launch_id, "unreadable"))
        shown = session.state is State.SUSPECT or ill_s <= self.BLIND_S + self.SLACK_S
        in_time = worst_s <= self.UNREADABLE_S + self.SLACK_S and ill_s <= self.EPISODE_S + self.SLACK_S
        if not shown or not in_time:
            what = "needs a human by now" if shown else "not shown"
            raise Broken(self.name, f"{session.name} is {session.state} after {ill_s:.0f} s of {self._read[launch_id]}: {what}")

    def _check_orphan(self, launch_id: str) -> None:
        """An agent without its pane is shown as soon as anybody knows."""
        session = self.world.daemon.known.get(launch_id.rpartition("-")[0])
        body = self.world.host.bodies.get(launch_id)
        current = session is not None and session.launch is not None and session.launch.id == launch_id
        if current and session is not None and body is not None and body.lives:
            well = session.state in (State.STARTING, State.RUNNING)
            self.demand(not well, f"{session.name} is {session.state}, and its pane is known to be gone")

    def _check_conclusion(self, launch_id: str) -> None:
        """What lives is called dead only by equal samples, never by what could not be read; the kernel then says otherwise."""
        body = self.world.host.bodies.get(launch_id)
        if body is not None and body.lives:
            samples = self._gone.get(launch_id, [])
            read = self._read.get(launch_id, {})
            pane_is_gone = "ended" in (read.get(Axis.RUNTIME), read.get(Axis.SERVER))
            sure = bool(samples) and (pane_is_gone or samples[-1] - samples[0] >= 5.0)
            self.demand(sure, f"{launch_id} lives, and is called dead by {self._read.get(launch_id)}")

    def _forget(self, launch_id: str) -> None:
        self._late.discard(launch_id)
        for what in ("ill", "wedged", "hung", "over", "unreadable"):
            self._since.pop((launch_id, what), None)
