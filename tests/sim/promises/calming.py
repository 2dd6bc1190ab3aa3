"""What the fleet is once faults have stopped."""

from __future__ import annotations

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect
from vigil.core.events import Applied, Asked, Declared, Event, ShiftAborted, ShiftAsked
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.restart import After, HoldReason, RestartWhen
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.team import Role, RoleSpec


class Converges(Promise):
    """When faults stop, the fleet becomes what was declared, within a bound."""

    name = "liveness"
    SETTLED = (State.RUNNING, State.PARKED, State.STOPPED, State.FAILED, State.SUCCEEDED)

    def calm(self) -> None:
        for session in self.world.store.sessions.values():
            body = self.world.host.bodies.get(session.launch.id) if session.launch else None
            lives = body is not None and body.lives
            told = f"{session.name} is {session.state} ({session.why}; {session.hold})"
            at_limit = self._is_at_its_limit(session)
            self.demand(session.state in self.SETTLED or at_limit, f"{told} long after the last fault")
            self.demand((session.state is State.RUNNING) == lives, f"{told}, and its agent {'lives' if lives else 'is dead'}")
            if session.state is State.RUNNING:
                self.demand(session.vitals.doubt is None, f"{told}, and is still doubted: {session.vitals.doubt}")
            self._check_wanted(session, told)
            if session.state is not State.RUNNING and session.launch is not None:
                open_still = body is not None and body.pane_is_open  # a shell that a dead agent left, for people to see
                self.demand(session.launch.closed or open_still, f"{told}, and nobody closed what it left")

    def _is_at_its_limit(self, session: Session) -> bool:
        """Say whether a session waits for a moment that is still to come."""
        hold = session.hold
        limit = session.state is State.PENDING and hold is not None and hold.reason == HoldReason.LIMIT
        return limit and hold is not None and hold.until is not None and hold.until > self.world.daemon.clock()

    def _check_wanted(self, session: Session, told: str) -> None:
        policy, death = session.spec.restart, session.last_death
        if death is not None and self.world.people.changed(session, death.at):
            return  # what it was under when it died was another policy
        reaped = death is not None and death.intent is not None and death.intent.verb is IntentVerb.REAP
        if session.state is State.PARKED and reaped:
            return  # nobody used it for so long
        if session.state is State.PARKED or self.world.people.sleeps(session.id):
            asleep = session.state is State.PARKED and self.world.people.sleeps(session.id)
            self.demand(
                asleep, f"{told}, and {'somebody' if self.world.people.sleeps(session.id) else 'nobody'} put it to sleep"
            )
        elif session.state is State.STOPPED:
            self.demand(self.world.people.stopped(session.id), f"{told}, and nobody stopped it")
        elif self.world.people.stopped(session.id):
            self.demand(False, f"{told}, and somebody stopped it")
        elif session.state is State.SUCCEEDED:
            ends = policy.when is not RestartWhen.ALWAYS and death is not None and death.cause is Cause.FINISHED
            self.demand(ends, f"{told}: it should have come back")
        elif session.state is State.FAILED:
            saturated = session.hold is not None and session.hold.reason == HoldReason.SATURATED and policy.max_restarts
            if session.hold is not None and session.hold.until is not None:
                self.demand(session.hold.until > self.world.daemon.clock() - 90.0, f"{told}: it should have been tried")
            self.demand(saturated or policy.when is RestartWhen.NEVER, f"{told}: it should have come back")


class Obeys(Promise):
    """What somebody asked for, and was told is done, is done."""

    name = "obeys"
    ENDED_BY_RESET = ("saturated", "backoff", "limit", "auth", "cold-start")
    OVER = (State.STOPPED, State.FAILED, State.SUCCEEDED)

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Declared):
            self.demand(event.session_id in self.world.daemon.known, f"{event.name} was declared, and is nowhere")
        elif isinstance(event, Asked):
            session = self.world.daemon.known.get(event.session_id)
            if session is not None:
                self._check(event.verb, session)
        elif isinstance(event, Applied):
            self._check_applied(event)
        elif isinstance(event, ShiftAsked | ShiftAborted):
            for role in (self.world.daemon.roles[key] for key in event.roles if key in self.world.daemon.roles):
                at_once = role.shifted is not None and role.shifted.at == self.world.daemon.clock()
                done = role.shift is None if isinstance(event, ShiftAborted) else role.shift is not None or at_once
                self.demand(done, f"{role.key} is at {role.shift} after {type(event).__name__}")

    def _check_applied(self, event: Applied) -> None:
        """A role is as declared, or its shift is waited for; what is not declared is gone, or leaves."""
        daemon, wanted = self.world.daemon, {role.key: role for role in event.manifest.roles}
        keys = {*wanted, *(key for key, role in daemon.roles.items() if role.spec.workspace == event.manifest.workspace)}
        for key in sorted(keys if event.only is None else keys & set(event.only)):
            was, role = daemon.was_role(key), daemon.roles.get(key)
            if key not in wanted:
                self.demand(role is None, f"{key} is taken out, and still there")
            elif was is None or was.shift is None or was.spec == wanted[key]:
                self.demand(role is not None and role.spec == wanted[key], f"{key} is not as declared")
                if role is not None and role.shift is None:
                    self._check_slots(role, wanted[key], event.at_once)

    def _check_slots(self, role: Role, wanted: RoleSpec, at_once: bool) -> None:
        staying = [session for session in self.world.daemon.replicas(role.key) if session.after is not After.REMOVE]
        for session in staying:
            told = f"{session.name} is {session.state} ({session.hold}) after `vigil up`"
            self.demand(session.index in role.slots, f"{told}, and nobody wants it")
            self.demand(session.hold is None or session.hold.reason != HoldReason.COLD_START, f"{told}: it was to start")
            same = session.spec.command == wanted.spec.command and session.spec.runtime is wanted.spec.runtime
            self.demand(same or (session.state in ALIVE and not at_once), f"{told}, and runs something else")
            self.demand(session.spec.restart == wanted.spec.restart, f"{told}, and comes back as before")

    def _check(self, verb: str, session: Session) -> None:
        if verb in ("start", "restart"):
            self.demand(session.state not in self.OVER, f"{session.name} is {session.state} after `vigil {verb}`")
        elif verb == "wake":
            self.demand(session.state is not State.PARKED, f"{session.name} is {session.state} after `vigil {verb}`")
        elif verb == "hibernate":
            ends = session.after in (After.STOP, After.REMOVE) and session.state is State.ENDING
            asleep = session.state is State.PARKED or session.after is After.PARK
            self.demand(asleep or ends or session.state not in ALIVE, f"{session.name} is {session.state} after `vigil {verb}`")
        elif verb == "reset":
            role = self.world.daemon.roles.get(session.role or "")
            charges = session.charges if role is None else role.charges
            for one in [session] if role is None else self.world.daemon.replicas(role.key):
                waits = one.hold is not None and one.hold.reason in self.ENDED_BY_RESET
                self.demand(not waits and charges == 0, f"{one.name} is {one.state} ({one.hold}) after `vigil reset`")
        else:
            self.demand(
                session.state in (State.ENDING, State.STOPPED), f"{session.name} is {session.state} after `vigil {verb}`"
            )

    def calm(self) -> None:
        left = self.world.people.removing & set(self.world.store.sessions)
        self.demand(not left, f"{sorted(left)} were to be removed, and are still there")
        missing = self.world.people.existing - set(self.world.store.sessions)
        self.demand(not missing, f"{sorted(missing)} were declared, and are gone")
