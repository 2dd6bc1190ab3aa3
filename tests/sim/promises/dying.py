"""Deaths: each leaves one record, with its cause: P3."""

from __future__ import annotations

import signal
from collections import defaultdict
from typing import TYPE_CHECKING

from tests.sim.host import Body, has_lost_its_pane
from tests.sim.promises.base import Promise
from vigil.core.effects import Persist
from vigil.core.model.death import Cause, Death, Intent, IntentVerb
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.restart import RestartWhen
from vigil.core.rules.death import OF_ITS_RUNTIME

if TYPE_CHECKING:
    from tests.sim.world import World


class OneDeath(Promise):
    """Every death leaves exactly one record with a cause and its evidence; what nobody could see says `unobserved`."""

    name = "P3"
    BY_POLICY = frozenset({Cause.POLICY, Cause.UNHEALTHY, Cause.STALLED})
    LEAVES_S = 10.1
    WITHIN_S = 150.0  # a pass every 15 s sees what no event told; what is only inferred waits for 60 s of silence

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._recorded: set[str] = set()
        self._intents: dict[str, list[Intent]] = defaultdict(list)
        self._found: set[str] = set()
        self._spared_at: dict[str, float] = {}  # what was meant with these launches was not done after all

    def written(self, change: Persist) -> None:
        self._found |= {launch.id for launch in change.launches if launch.found is not None}
        for intent in change.intents:
            self._check_replaced(intent)
            self._intents[intent.launch_id].append(intent)
            self._spared_at.pop(intent.launch_id, None)
        for entry in change.log:
            if entry.kind == "session.spared":
                self._spared_at[entry.launch_id or ""] = entry.at
        for death in change.deaths:
            self.demand(death.launch_id not in self._recorded, f"{death.launch_id} died twice")
            self.demand(death.evidence and death.evidence[0].text, f"the death of {death.launch_id} has no evidence")
            self._recorded.add(death.launch_id)
            self._check_cause(death)
            self._check_status(death)

    def _check_cause(self, death: Death) -> None:
        body = self.world.host.bodies.get(death.launch_id)
        if body is None or body.agent is None or death.uptime_s is None:  # nobody was told of its birth
            meant = {intent.cause for intent in self._intents[death.launch_id]}
            lived = body is not None and body.agent is not None
            untold = Cause.UNOBSERVED if lived else Cause.LAUNCH_FAILED
            unborn = {untold, Cause.OPERATOR, Cause.HOST_REBOOTED} | (meant & self.BY_POLICY)
            how = "untold" if lived else "never born"
            self.demand(death.cause in unborn, f"{death.id} of an agent {how}: {death.cause}")
            living = lived and body is not None and body.lives
            self.demand(not living or meant, f"{death.launch_id} is recorded dead ({death.cause}), and its agent runs on")
            return
        if not self._was_told_of(body):
            return
        self.demand(not body.lives, f"P7 too: {death.launch_id} is recorded dead ({death.cause}) and lives")
        self._check_late(death, body)
        allowed = self._causes(death, body)
        self.demand(death.cause in allowed, f"{death.launch_id}: {death.cause}, though it was {sorted(allowed)} ({_how(body)})")

    def _check_replaced(self, intent: Intent) -> None:
        """Whoever outlived its server or its pane is replaced for that, and not for the other."""
        body = self.world.host.bodies.get(intent.launch_id)
        if intent.verb is IntentVerb.REPLACE and body is not None:
            server_lives = body.server is not None and body.server.alive
            self.demand(not server_lives or intent.cause is not Cause.SERVER_DIED, f"{intent.reason}, and its server lives")

    def _check_status(self, death: Death) -> None:
        """What is said of a server is the server's."""
        body = self.world.host.bodies.get(death.launch_id)
        server = body.server if body is not None else None
        if death.cause is Cause.SERVER_DIED and (death.exit_code, death.signal) != (None, None):
            own = None if server is None else (server.exit_code, server.signal)
            self.demand((death.exit_code, death.signal) == own, f"{death.launch_id}: its server's status is not {death.signal}")

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
        policy = {intent.cause for intent in self._intents[death.launch_id]} & self.BY_POLICY
        intents = [intent for intent in self._intents[death.launch_id] if intent.cause is Cause.OPERATOR]
        if agent.id.boot != self.world.host.boot:
            return {Cause.HOST_REBOOTED}
        own = self._own_causes(body)
        if intents and death.cause is Cause.OPERATOR:
            asked_at = min(intent.at for intent in intents)
            return own if asked_at > death.at + 0.01 and death.observed_by != "shim" else {Cause.OPERATOR}
        if body.ended_by == "vigil" and intents:
            return {Cause.OPERATOR} | policy  # whoever wanted it last
        replaced = {intent.cause for intent in self._intents[death.launch_id]} & OF_ITS_RUNTIME
        if body.ended_by == "vigil":  # without an intent of its own policy ends orphans, and nothing else
            return policy | (replaced or (set() if policy else {Cause.SERVER_DIED}))
        if death.cause in policy:
            return self._meant_before(death, own)
        return own | replaced

    def _meant_before(self, death: Death, own: set[Cause]) -> set[Cause]:
        """What ended by itself is called what was meant with it only if that was meant before, and then.

        Who was spared may have been asked to leave already, and take a moment to do so.
        """
        if death.at > self._spared_at.get(death.launch_id, death.at) + self.LEAVES_S:
            return own
        meant_at = min(intent.at for intent in self._intents[death.launch_id] if intent.cause is death.cause)
        return own if meant_at > death.at + 0.01 and death.observed_by != "shim" else {death.cause}

    def _own_causes(self, body: Body) -> set[Cause]:
        agent, server = body.agent, body.server
        assert agent is not None
        by_status = self._by_status(body)
        if server is not None and not server.alive and server.ended_at <= agent.ended_at + 0.6:
            first = server.ended_at < agent.ended_at  # else whoever told the death may have done so before
            if by_status == {Cause.OOM}:  # that says more than what became of its server
                return by_status
            return {Cause.SERVER_DIED} | (by_status & {Cause.OOM} if first and body.ended_by != "vigil" else by_status)
        if body.known and has_lost_its_pane(body) and agent.signal in (None, signal.SIGHUP):
            return {Cause.PANE_CLOSED}
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
        told = body.told
        if number == signal.SIGKILL and told is not None and told.named is None and told.host_kills:
            if told.cgroup_kills == 0 and told.host_kills == told.elsewhere:
                return {Cause.KILLED_BY_UNKNOWN}  # others of ours died of it
            return {Cause.KILLED_BY_UNKNOWN, Cause.OOM}  # the kernel ended somebody just before, and nobody can read whom
        if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
            return {Cause.CRASH}
        if number is not None or code in (129, 130, 143):
            return {Cause.KILLED_BY_UNKNOWN}
        if body.words is not None:
            return {body.words.cause}
        # What it said in a hook counts, if it was heard and it has not worked since.
        said = {met.cause for met in body.met} if code != 0 or body.kind is RuntimeKind.HEADLESS else set()
        if code != 0:
            return {Cause.CRASH} | said
        session = self.world.store.sessions.get(body.session_id)
        always = session is not None and session.spec.restart.when is RestartWhen.ALWAYS
        uptime_s = agent.ended_at - body.born_at
        if always and uptime_s < 9:
            return {Cause.EARLY_EXIT} | said
        return said | ({Cause.FINISHED, Cause.EARLY_EXIT} if always and uptime_s < 11 else {Cause.FINISHED})

    def calm(self) -> None:
        sessions = self.world.store.sessions
        current = {s.launch.id for s in sessions.values() if s.launch is not None and s.launch.ended_at is None}
        for launch_id in self.world.carriers.births.given - current:
            known = launch_id.rpartition("-")[0] in sessions
            self.demand(not known or launch_id in self._recorded, f"{launch_id} was ordered, and left no record")
        for body in self.world.host.bodies.values():
            known = body.session_id in self.world.store.sessions and body.agent is not None and not body.agent.alive
            if known and self._was_told_of(body):
                self.demand(body.launch_id in self._recorded, f"{body.launch_id} died ({_how(body)}) and left no record")

    def _was_told_of(self, body: Body) -> bool:
        """An agent below a shell that ended before anybody found it is nobody's to record; its shell is."""
        return not body.named or body.launch_id in self._found


def _how(body: Body) -> str:
    agent = body.agent
    assert agent is not None
    status = f"exit {agent.exit_code}, signal {agent.signal}"
    return f"{status}, {body.ended_by or 'nobody knows'}, seen by {sorted(body.known) or 'nobody'}"
