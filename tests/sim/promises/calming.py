"""What the fleet is once faults have stopped."""

from __future__ import annotations

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect
from vigil.core.events import Asked, Declared, Event
from vigil.core.model import Cause, RestartWhen, Session, State


class Converges(Promise):
    """When faults stop, the fleet becomes what was declared, within a bound."""

    name = "liveness"
    SETTLED = (State.RUNNING, State.STOPPED, State.FAILED, State.SUCCEEDED)

    def calm(self) -> None:
        for session in self.world.store.sessions.values():
            body = self.world.host.bodies.get(session.launch.id) if session.launch else None
            lives = body is not None and body.lives
            told = f"{session.name} is {session.state} ({session.why}; {session.hold})"
            at_limit = self._is_at_its_limit(session)
            self.demand(session.state in self.SETTLED or at_limit, f"{told} long after the last fault")
            self.demand((session.state is State.RUNNING) == lives, f"{told}, and its agent {'lives' if lives else 'is dead'}")
            if session.state is State.RUNNING:
                self.demand(session.doubt is None, f"{told}, and is still doubted: {session.doubt}")
            self._check_wanted(session, told)
            if session.state is not State.RUNNING and session.launch is not None:
                open_still = body is not None and body.pane_is_open  # a shell that a dead agent left, for people to see
                self.demand(session.launch.closed or open_still, f"{told}, and nobody closed what it left")

    def _is_at_its_limit(self, session: Session) -> bool:
        """Say whether a session waits for a moment that is still to come."""
        hold = session.hold
        limit = session.state is State.PENDING and hold is not None and hold.reason == "limit"
        return limit and hold is not None and hold.until is not None and hold.until > self.world.daemon.clock()

    def _check_wanted(self, session: Session, told: str) -> None:
        policy, death = session.spec.restart, session.last_death
        if session.state is State.STOPPED:
            self.demand(self.world.people.stopped(session.id), f"{told}, and nobody stopped it")
        elif self.world.people.stopped(session.id):
            self.demand(False, f"{told}, and somebody stopped it")
        elif session.state is State.SUCCEEDED:
            ends = policy.when is not RestartWhen.ALWAYS and death is not None and death.cause is Cause.FINISHED
            self.demand(ends, f"{told}: it should have come back")
        elif session.state is State.FAILED:
            saturated = session.hold is not None and session.hold.reason == "saturated" and policy.max_restarts
            self.demand(saturated or policy.when is RestartWhen.NEVER, f"{told}: it should have come back")


class Obeys(Promise):
    """What somebody asked for, and was told is done, is done."""

    name = "obeys"
    OVER = (State.STOPPED, State.FAILED, State.SUCCEEDED)

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Declared):
            self.demand(event.session_id in self.world.daemon.known, f"{event.name} was declared, and is nowhere")
        elif isinstance(event, Asked):
            session = self.world.daemon.known.get(event.session_id)
            if session is not None:
                self._check(event.verb, session)

    def _check(self, verb: str, session: Session) -> None:
        if verb in ("start", "restart"):
            self.demand(session.state not in self.OVER, f"{session.name} is {session.state} after `vigil {verb}`")
        elif verb == "reset":
            waits = session.hold is not None and session.hold.reason in ("saturated", "backoff", "limit", "auth")
            self.demand(not waits and session.charges == 0, f"{session.name} is {session.state} after `vigil reset`")
        else:
            self.demand(
                session.state in (State.ENDING, State.STOPPED), f"{session.name} is {session.state} after `vigil {verb}`"
            )

    def calm(self) -> None:
        left = self.world.people.removing & set(self.world.store.sessions)
        self.demand(not left, f"{sorted(left)} were to be removed, and are still there")
        missing = self.world.people.existing - set(self.world.store.sessions)
        self.demand(not missing, f"{sorted(missing)} were declared, and are gone")
