"""Deaths and what they cost: P3 and P4."""

from __future__ import annotations

import signal
from collections import defaultdict
from typing import TYPE_CHECKING

from tests.sim.host import Body
from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Spawn
from vigil.core.events import Asked, Event
from vigil.core.model import Cause, Death, Intent, RestartPolicy, RestartWhen, Session, State

if TYPE_CHECKING:
    from tests.sim.world import World


class OneDeath(Promise):
    """Every death leaves exactly one record with a cause and its evidence; what nobody could see says `unobserved`."""

    name = "P3"
    WITHIN_S = 150.0  # a pass every 15 s sees what no event told; what is only inferred waits for 60 s of silence

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._recorded: set[str] = set()
        self._intents: dict[str, list[Intent]] = defaultdict(list)
        self._found: set[str] = set()

    def written(self, change: Persist) -> None:
        self._found |= {launch.id for launch in change.launches if launch.found is not None}
        for intent in change.intents:
            self._intents[intent.launch_id].append(intent)
        for death in change.deaths:
            self.demand(death.launch_id not in self._recorded, f"{death.launch_id} died twice")
            self.demand(death.evidence and death.evidence[0].text, f"the death of {death.launch_id} has no evidence")
            self._recorded.add(death.launch_id)
            self._check_cause(death)

    def _check_cause(self, death: Death) -> None:
        body = self.world.host.bodies.get(death.launch_id)
        if body is None or body.agent is None or death.uptime_s is None:  # nobody was told of its birth
            unborn = (Cause.LAUNCH_FAILED, Cause.OPERATOR, Cause.HOST_REBOOTED)
            self.demand(death.cause in unborn, f"{death.id} of an agent never born: {death.cause}")
            return
        if not self._was_told_of(body):
            return
        self.demand(not body.lives, f"P7 too: {death.launch_id} is recorded dead ({death.cause}) and lives")
        self._check_late(death, body)
        allowed = self._causes(death, body)
        self.demand(death.cause in allowed, f"{death.launch_id}: {death.cause}, though it was {sorted(allowed)} ({_how(body)})")

    def _check_late(self, death: Death, body: Body) -> None:
        """What could be seen is recorded soon."""
        assert body.agent is not None
        now, ended_at = self.world.engine.now, body.agent.ended_at
        could_not_s = self.world.excuses.since(ended_at, now) + self.world.blindness_of(body.session_id).since(ended_at, now)
        late_s = now - ended_at - could_not_s - self.WITHIN_S
        self.demand(late_s <= 0, f"the death of {death.launch_id} is recorded {late_s:.0f} s too late")

    def _causes(self, death: Death, body: Body) -> set[Cause]:
        """Return what may be said of a death, by what really happened."""
        agent = body.agent
        assert agent is not None
        intents = [intent for intent in self._intents[death.launch_id] if intent.cause is Cause.OPERATOR]
        if agent.id.boot != self.world.host.boot:
            return {Cause.HOST_REBOOTED}
        own = self._own_causes(body)
        if intents and death.cause is Cause.OPERATOR:
            asked_at = min(intent.at for intent in intents)
            return own if asked_at > death.at + 0.01 and death.observed_by != "shim" else {Cause.OPERATOR}
        if body.ended_by == "vigil" and intents:
            return {Cause.OPERATOR}
        if body.ended_by == "vigil":
            return {Cause.SERVER_DIED}  # the one thing policy ends by itself, so far: an orphan
        replaced = any(intent.cause is Cause.SERVER_DIED for intent in self._intents[death.launch_id])
        return own | ({Cause.SERVER_DIED} if replaced else set())

    def _own_causes(self, body: Body) -> set[Cause]:
        agent, server = body.agent, body.server
        assert agent is not None
        by_status = self._by_status(body)
        if server is not None and not server.alive and server.ended_at <= agent.ended_at + 0.6:
            first = server.ended_at < agent.ended_at  # else whoever told the death may have done so before
            if by_status == {Cause.OOM}:  # that says more than what became of its server
                return by_status
            return {Cause.SERVER_DIED} | (by_status & {Cause.OOM} if first and body.ended_by != "vigil" else by_status)
        return by_status

    def _by_status(self, body: Body) -> set[Cause]:
        agent = body.agent
        assert agent is not None
        if not body.known:
            return {Cause.UNOBSERVED}
        number, code = agent.signal, agent.exit_code
        if number is not None and not body.known & {"keeper", "kernel"}:
            return {Cause.CRASH, Cause.KILLED_BY_UNKNOWN}  # only `$?` is known
        if body.ended_by == "memory":
            return {Cause.OOM}
        if number == signal.SIGKILL and body.told is not None and body.told.named is None and body.told.host_kills:
            return {Cause.KILLED_BY_UNKNOWN, Cause.OOM}  # the kernel ended somebody just before, and nobody can read whom
        if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
            return {Cause.CRASH}
        if number is not None or code in (129, 130, 143):
            return {Cause.KILLED_BY_UNKNOWN}
        if body.words is not None:
            return {body.words.cause}
        if code != 0:
            return {Cause.CRASH}
        session = self.world.store.sessions.get(body.session_id)
        always = session is not None and session.spec.restart.when is RestartWhen.ALWAYS
        uptime_s = agent.ended_at - body.born_at
        if always and uptime_s < 9:
            return {Cause.EARLY_EXIT}
        return {Cause.FINISHED, Cause.EARLY_EXIT} if always and uptime_s < 11 else {Cause.FINISHED}

    def calm(self) -> None:
        for body in self.world.host.bodies.values():
            known = body.session_id in self.world.store.sessions and body.agent is not None and not body.agent.alive
            if known and self._was_told_of(body):
                self.demand(body.launch_id in self._recorded, f"{body.launch_id} died ({_how(body)}) and left no record")

    def _was_told_of(self, body: Body) -> bool:
        """An agent below a shell that ended before anybody found it is nobody's to record; its shell is."""
        return not body.named or body.launch_id in self._found


class Backoff(Promise):
    """Documented backoff is the real one; every death path goes through the same charge; restarts never exceed the policy."""

    name = "P4"
    COUNTED = frozenset(Cause) - {
        Cause.FINISHED,
        Cause.OPERATOR,
        Cause.POLICY,
        Cause.HOST_REBOOTED,
        Cause.LIMIT,
        Cause.AUTH,
    }
    OVER = (State.FAILED, State.SUCCEEDED)
    LIMIT_S = 3600.0  # where nobody says when it ends
    PACE = 4

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._count: dict[str, int] = defaultdict(int)
        self._not_before: dict[str, float] = {}
        self._why_not: dict[str, str] = {}
        self._charges: dict[str, int] = {}
        self._cleared: set[str] = set()  # sessions that waited for a moment of a clock that was set

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Asked):
            self._asked(event)
        for effect in effects:
            if isinstance(effect, Spawn):
                self._spawned(effect)
            elif isinstance(effect, Persist):
                sessions = {session.id: session for session in effect.sessions}
                for session in effect.sessions:
                    self._forgive(session)
                for death in effect.deaths:
                    if death.session_id in sessions:  # else it is removed with this
                        self._died(death, sessions[death.session_id])

    def _forgive(self, session: Session) -> None:
        """A launch that was up long enough, as far as anybody could see, clears the count."""
        launch = session.launch
        lives = launch is not None and launch.ended_at is None
        up_s = self.world.daemon.clock() - launch.started_at if launch is not None and launch.started_at is not None else 0.0
        if session.charges == 0 and lives and up_s >= session.spec.restart.reset_after_s:
            self._count[session.id] = 0

    def started(self) -> None:
        """What was decided and not durable never was: it is told again."""
        for session in self.world.store.sessions.values():
            self._count[session.id] = session.charges
            self._why_not.pop(session.id, None)
            death, hold = session.last_death, session.hold
            if death is not None and hold is not None and hold.reason in ("limit", "auth"):
                self._forbid_at_wall(death, session)
            elif death is not None and (session.state in self.OVER or (hold is not None and hold.reason == "backoff")):
                before = self._not_before.get(session.id)
                self._forbid(death, session)
                if before is not None:
                    self._not_before[session.id] = min(before, self._not_before[session.id])

    def _asked(self, event: Asked) -> None:
        if event.verb in ("start", "restart", "reset"):
            self._not_before.pop(event.session_id, None)
            self._why_not.pop(event.session_id, None)
            if event.verb != "restart":
                session = self.world.daemon.known.get(event.session_id)
                if event.verb == "reset" or (session is not None and session.charges == 0):
                    self._count[event.session_id] = 0

    def _died(self, death: Death, session: Session) -> None:
        policy = session.spec.restart
        self.demand(
            death.charged == (death.cause in self.COUNTED), f"{death.launch_id}: {death.cause} charged: {death.charged}"
        )
        if (death.uptime_s or 0.0) >= policy.reset_after_s:
            self._count[session.id] = 0
        if death.cause in self.COUNTED:
            self._count[session.id] += 1
        self._cleared.discard(session.id)
        count = self._count[session.id]
        self.demand(session.charges == count, f"{session.name} has {session.charges} charges after {count} charged deaths")
        if session.after is None and death.cause is not Cause.OPERATOR:  # else what follows is somebody's wish
            self._forbid(death, session)
            over = session.id in self._why_not
            self.demand((session.state in self.OVER) == over, f"{session.name} is {session.state} after {death.cause}")
            if not over and death.cause in (Cause.LIMIT, Cause.AUTH):
                self._forbid_at_wall(death, session)
                self._check_wall(death, session)

    def _forbid(self, death: Death, session: Session) -> None:
        """Note until when, or whether at all, policy may not bring a session back."""
        policy, wait_s = session.spec.restart, session.spec.restart.base_s
        if death.cause in self.COUNTED:
            wait_s = self._delay_s(policy, self._count[session.id])
        self._not_before[session.id] = min(death.at, self.world.daemon.clock()) + wait_s  # the clock may have been set back
        self._why_not.pop(session.id, None)
        if policy.when is RestartWhen.NEVER or (policy.when is RestartWhen.ON_FAILURE and death.cause is Cause.FINISHED):
            self._why_not[session.id] = f"after {death.cause} under {policy.when}"
        elif death.cause in self.COUNTED and 0 < policy.max_restarts < self._count[session.id]:
            self._why_not[session.id] = f"after {policy.max_restarts} restarts"

    def _forbid_at_wall(self, death: Death, session: Session) -> None:
        """Nobody is launched before a wall is gone; who was locked out waits for a person."""
        ends_at = self._wall_ends_at(death, session)
        if ends_at is None:
            self._why_not[session.id] = "and nobody let it in"
        elif session.id not in self._cleared:
            self._not_before[session.id] = ends_at

    def _check_wall(self, death: Death, session: Session) -> None:
        """A wall is waited for as such, and no longer than it stands."""
        hold, ends_at = session.hold, self._wall_ends_at(death, session)
        told = f"{session.name} waits for {hold}, though it met a {death.cause} until {ends_at}"
        self.demand(hold is not None and (hold.reason, hold.until) == (death.cause.value, ends_at), told)

    def _wall_ends_at(self, death: Death, session: Session) -> float | None:
        """Return when a wall is gone, by what the agent really said; None if that needs a person."""
        body = self.world.host.bodies.get(death.launch_id)
        words = body.words if body is not None else None
        if words is None or words.cause is Cause.AUTH:
            return None
        if words.resets_at is None:
            return death.at + self.LIMIT_S
        return max(words.resets_at, death.at + session.spec.restart.base_s)

    @staticmethod
    def _delay_s(policy: RestartPolicy, count: int) -> float:
        wait_s = policy.base_s
        for _ in range(min(count - 1, 64)):
            wait_s = min(policy.cap_s, wait_s * policy.factor)
        return min(policy.cap_s, wait_s) * (1 - policy.jitter)

    def _spawned(self, effect: Spawn) -> None:
        session = effect.session
        self.demand(session.id not in self._why_not, f"{session.name} came back {self._why_not.get(session.id)}")
        early_s = self._not_before.get(session.id, 0.0) - self.world.daemon.clock()
        self.demand(early_s <= 0.01, f"{session.name} came back {early_s:.1f} s early, after {self._count[session.id]} charges")
        starting = [
            s for s in self.world.daemon.known.values() if s.state is State.STARTING and s.launch and not s.launch.process
        ]
        self.demand(len(starting) <= self.PACE, f"{len(starting)} launches start at once")

    def rebooted(self) -> None:
        self._cleared = set(self.world.store.sessions)  # the clock may have been set while the host was off
        self._not_before.clear()

    def written(self, change: Persist) -> None:
        died = {death.session_id for death in change.deaths if death.cause in self.COUNTED}
        for session in change.sessions:
            before = self._charges.get(session.id, 0)
            more = session.charges - before
            if more > 0:
                self.demand(more == 1 and session.id in died, f"{session.name} is charged {more} without a death")
            self._charges[session.id] = session.charges

    def calm(self) -> None:
        for session in self.world.store.sessions.values():
            body = self.world.host.bodies.get(session.launch.id) if session.launch else None
            long = body is not None and self.world.engine.now - body.born_at > session.spec.restart.reset_after_s + 60
            if long and session.state is State.RUNNING:
                self.demand(session.charges == 0, f"{session.name} has been up long enough, and is not forgiven")


def _how(body: Body) -> str:
    agent = body.agent
    assert agent is not None
    status = f"exit {agent.exit_code}, signal {agent.signal}"
    return f"{status}, {body.ended_by or 'nobody knows'}, seen by {sorted(body.known) or 'nobody'}"
