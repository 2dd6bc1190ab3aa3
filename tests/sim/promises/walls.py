"""Walls: a fleet meets a limit, or a login that failed, once (DESIGN 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Spawn
from vigil.core.events import Applied, Asked, Event, Hooked
from vigil.core.model.death import Cause
from vigil.core.model.session import Session
from vigil.core.model.speech import Hook

if TYPE_CHECKING:
    from tests.sim.world import World


class OncePerAccount(Promise):
    """Nobody of an account is launched by policy before a wall that one of them met, until it is gone.

    It is gone when its moment has come, or when one who met it, or was launched since, works; then nobody waits any more.
    """

    name = "walls"
    WALLS = (Cause.LIMIT, Cause.AUTH)
    REASONS = ("limit", "auth")
    LEAST_S = 60.0  # of a limit that does not say when it ends, or a moment that has passed
    SOON_S = 0.01

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._met: dict[str, tuple[float, float | None]] = {}  # by session: when, and before when it stands; None: for ever
        self._ever: set[str] = set()  # who met one: whether it has got past it is not followed here as closely
        self._own: set[str] = set()  # whose wall is one for them alone
        self._asked_at: dict[str, float] = {}
        self._worked: dict[str, float] = {}  # by launch, in this event

    def hears(self, launch_id: str, said: list[tuple[Hook, str]]) -> None:
        session = self.world.daemon.machine.of_launch(launch_id)
        if session is None or session.launch is None or session.launch.ended_at is not None:
            return
        for hook, meant in sorted(said, key=lambda one: one[0].at):
            verb, _, until = meant.partition(", ")[2].partition(" ")
            if verb in self.REASONS:
                self._meet(session, hook.at, Cause(verb), float(until) if until else None)
            elif meant.startswith(("tool", "rests", "asks")):  # the end of a turn that went well proves it too, and a question
                self._work(session, hook.at)
                if meant.startswith("tool"):
                    self._worked[launch_id] = hook.at

    def _meet(self, session: Session, at: float, cause: Cause, until: float | None) -> None:
        stands_s = self.LEAST_S if until is None or until <= at else until - at
        before = self._met.get(session.id)
        ends_at = at + stands_s if cause is Cause.LIMIT else None
        if before is not None and before[1] is not None and ends_at is not None and before[1] > at:
            ends_at = min(ends_at, before[1])  # of two words about one, either may count
        self._met[session.id] = (at, ends_at)
        self._own.discard(session.id)
        self._ever.add(session.id)

    def _work(self, session: Session, at: float) -> None:
        assert session.launch is not None
        for other in self._of_account(session):
            met = self._met.get(other.id)
            if met is not None and met[0] < at and (session.id in self._ever or session.launch.created_at > met[0]):
                del self._met[other.id]
            elif met is not None and met[0] + self.LEAST_S < at:
                self._own.add(other.id)  # it is no wall for all

    def _of_account(self, session: Session) -> list[Session]:
        known = self.world.daemon.known.values()
        return [one for one in known if one.id == session.id or (session.account and one.account == session.account)]

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Asked):
            self._ask(event.verb, event.session_id)
        for effect in effects:
            if isinstance(effect, Persist):
                self._take_in(effect, isinstance(event, Applied))
        for effect in effects:
            if isinstance(effect, Spawn):
                self._check(effect.session)
        if isinstance(event, Hooked) and event.launch_id in self._worked:
            self._check_released(event.launch_id, self._worked.pop(event.launch_id))

    def _take_in(self, change: Persist, applied: bool) -> None:
        for entry in change.log if applied else ():
            if entry.kind.startswith("session.asked-"):
                self._ask(entry.kind.removeprefix("session.asked-"), entry.session_id or "")
        for death in change.deaths:
            session, body = self.world.daemon.known.get(death.session_id), self.world.host.bodies.get(death.launch_id)
            if session is not None and death.cause in self.WALLS and body is not None and body.words is not None:
                self._meet(session, death.at, death.cause, body.words.resets_at)
        for session_id in change.removed:
            self._met.pop(session_id, None)

    def _ask(self, verb: str, session_id: str) -> None:
        session = self.world.daemon.known.get(session_id)
        if verb not in ("start", "restart", "reset") or session is None:
            return
        meant = self.world.daemon.replicas(session.role) if verb == "reset" and session.role is not None else [session]
        self._asked_at |= {one.id: self.world.daemon.clock() for one in (session, *meant)}

    def _check(self, session: Session) -> None:
        """Nobody is launched who would only meet what another one met."""
        now = self.world.daemon.clock()
        for other in self._of_account(session):
            at, ends_at = self._met.get(other.id, (0.0, 0.0))
            stands = ends_at is None or now < ends_at - self.SOON_S
            excused = at <= self._asked_at.get(session.id, 0.0)
            excused |= other.id != session.id and other.id in self._own
            self.demand(excused or not stands, f"{session.name} is launched, though {other.name} met a wall until {ends_at}")

    def _check_released(self, launch_id: str, at: float) -> None:
        """Nobody waits for a wall that one has got past."""
        session = self.world.daemon.machine.of_launch(launch_id)
        if session is None or any(one.wall is not None for one in self._of_account(session)):
            return  # another one met another since, or it was no proof
        for other in self._of_account(session):
            waits = other.hold is not None and other.hold.reason in self.REASONS
            self.demand(not waits, f"{other.name} waits for {other.hold}, though {session.name} works")

    def started(self) -> None:
        """What was said and not durable is said again."""
        stored = self.world.store.sessions
        self._met = {one: met for one, met in self._met.items() if one in stored and stored[one].wall is not None}
        self._worked.clear()

    def rebooted(self) -> None:
        """The clock may have been set."""
        self._met.clear()
