"""What deaths cost, in waiting: P4, for lone sessions and for roles."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Spawn
from vigil.core.events import Applied, Asked, Event
from vigil.core.model.death import Cause, Death, IntentVerb
from vigil.core.model.restart import Hold, HoldReason, RestartPolicy, RestartWhen
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.team import Role

if TYPE_CHECKING:
    from tests.sim.world import World

COUNTED = frozenset(Cause) - {
    Cause.FINISHED,
    Cause.OPERATOR,
    Cause.POLICY,
    Cause.HOST_REBOOTED,
    Cause.LIMIT,
    Cause.AUTH,
}
ONE_EVENT_S = 1.0


class Backoff(Promise):
    """Documented backoff is the real one; every death path goes through the same charge; restarts never exceed the policy.

    A role has one count. Deaths within a second of the first are one event and one charge, each waits from its own moment; the
    count returns to 0 when the youngest live replica was up long enough and none is in backoff. A role that was given up has
    one trial at a time.
    """

    name = "P4"
    OVER = (State.FAILED, State.SUCCEEDED)
    RESTING = (State.FAILED, State.SUCCEEDED, State.STOPPED, State.PARKED)
    UNDECIDED = ALIVE | {State.CRASHED, State.PENDING}
    LIMIT_S = 3600.0  # where nobody says when it ends
    PACE = 4

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._count: dict[str, int] = defaultdict(int)  # of a role, or of a lone session
        self._event_at: dict[str, float] = {}  # the first death of a role's newest event
        self._not_before: dict[str, float] = {}
        self._why_not: dict[str, str] = {}
        self._charges: dict[str, int] = {}
        self._cleared: set[str] = set()  # sessions that waited for a moment of a clock that was set
        self._given_up: set[str] = set()  # replicas that come back only as a trial
        self._trial_at: dict[str, float] = {}  # before then nobody of a role that was given up is tried
        self._trial: dict[str, str] = {}
        self._cold: set[str] = set()  # replicas that wait for a person after a boot

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Asked):
            self._asked(event.verb, event.session_id)
        for effect in effects:
            if isinstance(effect, Spawn):
                self._spawned(effect)
            elif isinstance(effect, Persist):
                if isinstance(event, Applied):
                    self._applied(effect)
                self._take_in(effect)

    def _applied(self, change: Persist) -> None:
        """What a manifest asks of its replicas is asked by a person; whether a role is tried, and when, is as it says now."""
        for entry in change.log:
            if entry.kind.startswith("session.asked-"):
                self._asked(entry.kind.removeprefix("session.asked-"), entry.session_id or "")
        for role in change.roles:
            self._trial_at.pop(role.key, None)
            retry_s = role.spec.retry_saturated_s
            if role.key in self._event_at and retry_s:
                self._trial_at[role.key] = min(self._event_at[role.key], self.world.daemon.clock()) + retry_s
            for session in self.world.daemon.replicas(role.key):
                if session.state is State.FAILED and session.hold is not None and session.hold.reason == HoldReason.SATURATED:
                    self._why_not.pop(session.id, None)
                    self._given_up.add(session.id)
                    if not retry_s:
                        self._why_not[session.id] = "though a person is to be waited for"

    def _take_in(self, change: Persist) -> None:
        sessions = {session.id: session for session in change.sessions}
        for key in change.removed_roles:
            self._forget(key)
        for role in change.roles:
            if self.world.daemon.was_role(role.key) is None:
                self._forget(role.key)
            elif not change.deaths and not role.charges and self._count[role.key]:
                self.demand(self._is_steady(role.key, self.world.daemon.clock() + 0.01), f"{role.key} is forgiven early")
                self._forget(role.key)
        for session in change.sessions:
            self._forgive(session)
        for death in change.deaths:
            if death.session_id in sessions:  # else it is removed with this
                self._died(death, sessions[death.session_id])

    def _forget(self, key: str) -> None:
        """Nothing stands against a role any more."""
        self._count[key] = 0
        self._event_at.pop(key, None)
        self._trial_at.pop(key, None)
        self._trial.pop(key, None)
        for session in self.world.daemon.replicas(key):
            if session.id in self._given_up:
                self._given_up.discard(session.id)
                self._not_before.pop(session.id, None)

    def _role_of(self, session: Session) -> Role | None:
        return self.world.daemon.was_role(session.role) if session.role is not None else None

    def _is_steady(self, key: str, at: float) -> bool:
        """Say whether a role has been up long enough to be forgiven, as it was before this moment.

        Not while one is in backoff; nor while one was given up, unless another one of those is tried.
        """
        role, were = self.world.daemon.was_role(key), self.world.daemon.were(key)
        assert role is not None
        waits = {session.hold.reason for session in were if session.hold is not None}
        tried = any(session.id == role.trial and session.state in ALIVE for session in were)
        started = [session.launch.started_at for session in were if session.state in ALIVE and session.launch is not None]
        if "backoff" in waits or ("saturated" in waits and not tried) or None in started:
            return False
        return bool(started) and at >= max(filter(None, started)) + role.spec.spec.restart.reset_after_s

    def _forgive(self, session: Session) -> None:
        """A launch of a lone session that was up long enough, as far as anybody could see, clears the count."""
        launch = session.launch
        lives = launch is not None and launch.ended_at is None
        up_s = self.world.daemon.clock() - launch.started_at if launch is not None and launch.started_at is not None else 0.0
        if session.charges == 0 and lives and up_s >= session.spec.restart.reset_after_s and session.role is None:
            self._count[session.id] = 0

    def started(self) -> None:
        """What was decided and not durable never was: it is told again."""
        store = self.world.store
        self._given_up = {session.id for session in store.sessions.values() if _is_to_be_tried(session)}
        for role in store.roles.values():
            self._count[role.key] = role.charges
            self._event_at.pop(role.key, None)
            self._trial.pop(role.key, None)
            if role.event_at is not None:
                self._event_at[role.key] = role.event_at
            if role.trial is not None:
                self._trial[role.key] = role.trial
        for session in store.sessions.values():
            if session.role not in store.roles:
                self._count[session.id] = session.charges
            self._why_not.pop(session.id, None)
            death, hold = session.last_death, session.hold
            if hold is not None and hold.reason in (HoldReason.LIMIT, HoldReason.AUTH):
                self._not_before.pop(session.id, None)  # see `walls.py`
            elif hold is not None and hold.reason == HoldReason.BACKOFF and session.id in self._not_before:
                self._not_before[session.id] = min(hold.until or 0.0, self._not_before[session.id])
            elif death is not None and session.state in self.OVER:
                before = self._not_before.get(session.id)
                self._forbid(death, session, self._began(death, session))
                if before is not None:
                    self._not_before[session.id] = min(before, self._not_before[session.id])
            if session.id in self._cleared:  # whatever it waits for is a moment of a clock that was set
                self._not_before.pop(session.id, None)
                self._trial_at.pop(session.role or "", None)

    def _asked(self, verb: str, session_id: str) -> None:
        session, before = self.world.daemon.known.get(session_id), self.world.daemon.was(session_id)
        woken = verb == "wake" and before is not None and before.state is not State.STOPPED and _may_wake(before)
        if not (woken or verb in ("start", "restart", "reset")) or session is None or before is None:
            return
        role = self._role_of(session)
        meant = [session.id] if verb != "reset" or role is None else [one.id for one in self.world.daemon.replicas(role.key)]
        for one in meant:
            self._not_before.pop(one, None)
            self._why_not.pop(one, None)
            self._given_up.discard(one)
            self._cold.discard(one)
        if verb == "reset" or (verb == "start" and before.state not in ALIVE):
            if role is not None:
                self._forget(role.key)
            self._count[session.id] = 0

    def _died(self, death: Death, session: Session) -> None:
        ours = self._is_ours(death)
        counted = death.cause in COUNTED and not ours
        self.demand(death.charged == counted, f"{death.launch_id}: {death.cause} charged: {death.charged}")
        began, key = self._charge(death, session), self._key(session)
        self._cleared.discard(session.id)
        count, role = self._count[key], self.world.daemon.roles.get(session.role or "")
        charges = session.charges if role is None else role.charges
        self.demand(charges == count, f"{session.name} has {charges} charges after {count} charged deaths")
        reaped = death.intent is not None and death.intent.verb is IntentVerb.REAP and session.state is State.PARKED
        if ours and session.after is None:
            self._check_again(death, session)
        elif session.after is None and death.cause is not Cause.OPERATOR and not reaped:  # else what follows is somebody's wish
            over = self._forbid(death, session, began)
            self.demand((session.state in self.OVER) == over, f"{session.name} is {session.state} after {death.cause}")
            if not over and death.cause in (Cause.LIMIT, Cause.AUTH):
                self._check_wall(death, session)
            elif not over:
                self._check_wait(death, session)

    def _is_ours(self, death: Death) -> bool:
        """Say whether a launch never began because keeper or daemon were not there: P15, nobody is charged for that."""
        return death.cause is Cause.LAUNCH_FAILED and death.launch_id not in self.world.carriers.births.by_itself

    def _check_again(self, death: Death, session: Session) -> None:
        """What Vigil lost is launched again after its base, whatever its policy."""
        hold, policy = session.hold, session.spec.restart
        told = f"{session.name} is {session.state} ({hold}) after Vigil lost its launch"
        self.demand(session.state is State.PENDING and hold == Hold(HoldReason.BACKOFF, death.at + policy.base_s), told)
        self._not_before[session.id] = min(death.at, self.world.daemon.clock()) + policy.base_s
        self._why_not.pop(session.id, None)

    def _key(self, session: Session) -> str:
        role = self._role_of(session)
        return session.id if role is None else role.key

    def _charge(self, death: Death, session: Session) -> float:
        """Count a death; return the moment from which its wait is counted."""
        key, role, counted = self._key(session), self._role_of(session), death.charged
        if self._is_ours(death):
            return death.at
        if session.role is not None and role is None:  # its role is no more: from then on it is a lone one
            before = self.world.daemon.was(session.id)
            self._count[key] = before.charges if before is not None else 0
        if role is None:
            if (death.uptime_s or 0.0) >= session.spec.restart.reset_after_s:
                self._count[key] = 0
        elif counted and self._is_of_last_event(death, session):
            return self._event_at[key]
        elif self._is_steady(key, death.at):
            self._count[key] = 0
        if counted:
            self._count[key] += 1
            if role is not None:
                self._event_at[key] = death.at
        return death.at

    def _is_of_last_event(self, death: Death, session: Session) -> bool:
        event_at = self._event_at.get(self._key(session))
        if event_at is None or session.launch is None:
            return False
        return abs(death.at - event_at) <= ONE_EVENT_S and session.launch.created_at <= event_at

    def _began(self, death: Death, session: Session) -> float:
        return self._event_at[self._key(session)] if self._is_of_last_event(death, session) else death.at

    def _forbid(self, death: Death, session: Session, began: float) -> bool:
        """Note until when, or whether at all, policy may not bring a session back; say whether it does not."""
        policy, wait_s, count = session.spec.restart, session.spec.restart.base_s, self._count[self._key(session)]
        role = self.world.daemon.roles.get(session.role or "")
        if death.cause in COUNTED:
            wait_s = self._delay_s(policy, count) * (1 - policy.jitter)
        self._not_before[session.id] = min(death.at, self.world.daemon.clock()) + wait_s  # the clock may have been set back
        self._why_not.pop(session.id, None)
        if policy.when is RestartWhen.NEVER or (policy.when is RestartWhen.ON_FAILURE and death.cause is Cause.FINISHED):
            self._why_not[session.id] = f"after {death.cause} under {policy.when}"
        elif death.cause in COUNTED and 0 < policy.max_restarts < count:
            if role is None or not role.spec.retry_saturated_s:
                self._why_not[session.id] = f"after {policy.max_restarts} restarts"
            else:
                self._given_up.add(session.id)
                self._trial_at[role.key] = min(began, self.world.daemon.clock()) + role.spec.retry_saturated_s
        else:
            return False
        return True

    def _check_wait(self, death: Death, session: Session) -> None:
        """The wait is as long as documented, give or take the jitter; a fleet that a boot took may wait for a person."""
        hold, policy = session.hold, session.spec.restart
        if hold is not None and hold.reason == HoldReason.COLD_START:
            return
        wait_s, jitter = policy.base_s, 0.0
        if death.cause in COUNTED:
            wait_s, jitter = self._delay_s(policy, self._count[self._key(session)]), policy.jitter
        least, most = death.at + wait_s * (1 - jitter), death.at + wait_s * (1 + jitter)
        right = hold is not None and hold.until is not None and least - 0.01 <= hold.until <= most + 0.01
        self.demand(right, f"{session.name} waits for {hold} after {death.cause}, and not from {least} to {most}")

    def _check_wall(self, death: Death, session: Session) -> None:
        """A wall is waited for as such, and no longer than it stands."""
        hold, ends_at = session.hold, self._wall_ends_at(death, session)
        told = f"{session.name} waits for {hold}, though it met a {death.cause} until {ends_at}"
        self.demand(hold is not None and (hold.reason, hold.until) == (death.cause.value, ends_at), told)

    def _wall_ends_at(self, death: Death, session: Session) -> float | None:
        """Return when a wall is gone, by what the agent really said; None if that needs a person.

        What it says of its end counts within reason: else the wait grows each time it is met again in a row.
        """
        body, before = self.world.host.bodies.get(death.launch_id), self.world.daemon.was(session.id)
        wall = before.wall if before is not None else None
        same = wall is not None and wall.launch_id == death.launch_id and not wall.over
        same = same and wall is not None and (wall.until is None or death.at < wall.until) and wall.cause is death.cause
        words = body.words if body is not None and body.words is not None else None
        least_at = death.at + session.spec.restart.base_s
        if death.cause is Cause.AUTH:
            return None
        resets_at = words.resets_at if words is not None else None
        if same and wall is not None and wall.until is not None and (resets_at is None or resets_at <= death.at):
            return max(wall.until, least_at)
        again: int = 0 if wall is None or wall.cause is not death.cause or same else wall.tries
        if resets_at is None:
            return max(death.at + min(self.LIMIT_S * (1 << again), 6 * self.LIMIT_S), least_at)
        return max(resets_at if resets_at > death.at else death.at + min(60.0 * (1 << again), self.LIMIT_S), least_at)

    @staticmethod
    def _delay_s(policy: RestartPolicy, count: int) -> float:
        wait_s = policy.base_s
        for _ in range(min(count - 1, 64)):
            wait_s = min(policy.cap_s, wait_s * policy.factor)
        return min(policy.cap_s, wait_s)

    def _spawned(self, effect: Spawn) -> None:
        session = effect.session
        self.demand(session.id not in self._why_not, f"{session.name} came back {self._why_not.get(session.id)}")
        self.demand(session.id not in self._cold, f"{session.name} came back after a boot, and nobody started it")
        early_s = self._not_before.get(session.id, 0.0) - self.world.daemon.clock()
        count = self._count[self._key(session)]
        self.demand(early_s <= 0.01, f"{session.name} came back {early_s:.1f} s early, after {count} charges")
        if session.id in self._given_up:
            self._check_trial(session)
        starting = [
            s for s in self.world.daemon.known.values() if s.state is State.STARTING and s.launch and not s.launch.process
        ]
        self.demand(len(starting) <= self.PACE, f"{len(starting)} launches start at once")

    def _check_trial(self, session: Session) -> None:
        """One of a role that was given up is tried, not before its time, and no other beside it."""
        key = session.role or ""
        early_s = self._trial_at.get(key, 0.0) - self.world.daemon.clock()
        self.demand(early_s <= 0.01, f"{session.name} is tried {early_s:.1f} s early")
        other = self.world.daemon.was(self._trial.get(key, ""))
        alone = other is None or other.id == session.id or other.state not in self.UNDECIDED
        self.demand(alone, f"{session.name} is tried beside {other.name if other else ''}")
        self._given_up.discard(session.id)
        self._trial[key] = session.id

    def rebooted(self) -> None:
        """The clock may have been set while the host was off; a role that does not start by itself waits for a person."""
        store = self.world.store
        self._cleared = set(store.sessions)
        self._not_before.clear()
        self._trial_at.clear()
        for session in store.sessions.values():
            role = store.roles.get(session.role or "")
            waits = session.state not in self.RESTING and session.after is None
            if role is not None and not role.spec.autostart and waits:
                self._cold.add(session.id)

    def written(self, change: Persist) -> None:
        died = {death.session_id for death in change.deaths if death.cause in COUNTED}
        roles = {session.role for session in change.sessions if session.id in died}
        charged = [(role.key, role.charges, role.key in roles) for role in change.roles]
        charged += [(session.id, session.charges, session.id in died) for session in change.sessions if session.role is None]
        for key, charges, is_due in charged:
            more = charges - self._charges.get(key, 0)
            self.demand(more <= 0 or (more == 1 and is_due), f"{key} is charged {more} without a death")
            self._charges[key] = charges
        for key in change.removed_roles:
            self._charges.pop(key, None)

    def calm(self) -> None:
        now, clock = self.world.engine.now, self.world.daemon.clock()
        for session in self.world.store.sessions.values():
            body = self.world.host.bodies.get(session.launch.id) if session.launch else None
            long = body is not None and now - body.born_at > session.spec.restart.reset_after_s + 60
            if long and session.state is State.RUNNING and session.role is None:
                self.demand(session.charges == 0, f"{session.name} has been up long enough, and is not forgiven")
        for role in self.world.store.roles.values():
            runs = any(session.state is State.RUNNING for session in self.world.daemon.replicas(role.key))
            forgiven = role.charges == 0 or not runs or not self._is_steady(role.key, clock - 90.0)
            self.demand(forgiven, f"{role.key} has been up long enough, and is not forgiven")


def _is_to_be_tried(session: Session) -> bool:
    hold = session.hold
    return session.state is State.FAILED and hold is not None and hold.reason == HoldReason.SATURATED and hold.until is not None


class Marker(Promise):
    """At most one replica of a role shows `crashed`: the lowest slot of those that the newest event took."""

    name = "P4"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._taken: dict[str, set[str]] = {}  # by role: the launches that its newest event took

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                for key in {session.role for session in effect.sessions if session.role is not None}:
                    died = [death for death in effect.deaths if death.charged and self._is_of(death, key)]
                    self._check(key, [death.launch_id for death in died])

    def _is_of(self, death: Death, key: str) -> bool:
        session = self.world.daemon.known.get(death.session_id)
        return session is not None and session.role == key

    def started(self) -> None:
        self._taken = {}  # what was told and not durable is told again

    def _check(self, key: str, died: list[str]) -> None:
        replicas, role = self.world.daemon.replicas(key), self.world.daemon.roles.get(key)
        shown = [session for session in replicas if session.state is State.CRASHED]
        names = [session.name for session in shown]
        self.demand(len(shown) <= 1, f"{names} are all called crashed")
        if role is None or not died:
            return
        was = self.world.daemon.was_role(key)
        if was is None or was.event_at != role.event_at:
            self._taken[key] = set()
        elif key not in self._taken:
            return
        taken = self._taken[key]
        taken.update(died)
        down = [session for session in replicas if self._is_down(session) and session.launch and session.launch.id in taken]
        if down and len(down) == len(taken):  # else somebody has dealt with one of them, or it came back
            lowest = min(down, key=lambda session: session.index)
            self.demand(shown == [lowest], f"{names} shows what befell {lowest.name}")

    @staticmethod
    def _is_down(session: Session) -> bool:
        """Say whether a replica waits since its last death."""
        hold, waits = session.hold, session.state in (State.CRASHED, State.PENDING)
        return waits and hold is not None and hold.reason == HoldReason.BACKOFF


def _may_wake(session: Session) -> bool:
    """Say whether nothing stands against a wake: no backoff, and no wall."""
    return session.hold is None or session.hold.reason == HoldReason.COLD_START
