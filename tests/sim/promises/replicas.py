"""How many replicas there are: exactly those that were declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist
from vigil.core.events import Applied, Event
from vigil.core.model.restart import After
from vigil.core.model.session import Session, State
from vigil.core.model.team import RoleSpec
from vigil.core.rules.plan import PlanVerb, make_plan

if TYPE_CHECKING:
    from tests.sim.world import World

Declared = dict[str, RoleSpec]


class Exact(Promise):
    """Every slot of a role has one session, whatever its state, and nothing is made in the place of one that rests.

    No role has more than were declared, but for what a person is in; who has no slot any more goes when they have left.
    """

    name = "replicas"
    GOES_S = 45.0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._declared: Declared = {}
        self._durable: Declared = {}
        self._coming: dict[int, tuple[Persist, Declared, float]] = {}  # not durable yet
        self._applied_at = 0.0  # the last manifest, by the daemon's clock
        self._extra: dict[str, float] = {}  # sessions without a slot, and since when

    def decided(self, event: Event, effects: list[Effect]) -> None:
        change = effects[0] if effects and isinstance(effects[0], Persist) else Persist()
        if isinstance(event, Applied):
            self._declared = self._after(event)
            now = self.world.daemon.clock()
            self._coming[id(change)] = (change, self._declared, now)
            if change == Persist():
                self._durable, self._applied_at = self._declared, now

    def _after(self, event: Applied) -> Declared:
        """Return what is declared once a manifest was applied; what is being shifted waits."""
        declared = {
            key: role
            for key, role in self._declared.items()
            if role.workspace != event.manifest.workspace or (event.only is not None and key not in event.only)
        }
        for role in event.manifest.roles:
            if event.only is None or role.key in event.only:
                was = self.world.daemon.was_role(role.key)
                shifted = was is not None and was.shift is not None
                declared[role.key] = self._declared[role.key] if shifted else role
        return declared

    def started(self) -> None:
        self._declared, self._coming = self._durable, {}

    def written(self, change: Persist) -> None:
        _, self._durable, self._applied_at = self._coming.pop(id(change), (change, self._durable, self._applied_at))
        store = self.world.store
        for role in change.roles:
            right = len(set(role.slots)) == len(role.slots) == role.spec.replicas
            self.demand(right, f"{role.key} has the slots {role.slots}, and {role.spec.replicas} were declared")
        touched = {role.key for role in change.roles} | {session.role for session in change.sessions if session.role}
        for key in touched:
            found = [session for session in store.sessions.values() if session.role == key]
            names = [session.name for session in found]
            self.demand(len(set(names)) == len(names), f"two have one slot: {sorted(names)}")
            self._check(key, found)

    def _check(self, key: str, found: list[Session]) -> None:
        role = self.world.store.roles.get(key)
        wanted = set() if role is None else set(role.wanted) | set(role.shift.old if role.shift is not None else ())
        missing = wanted - {session.index for session in found} - set(role.shift.old if role and role.shift else ())
        self.demand(not missing, f"{key}: nobody is in the slots {sorted(missing)}")
        for session in found:
            stays = session.after is not After.REMOVE and session.index not in wanted
            self._check_extra(session, stays and not self._is_excused(session))

    def _check_extra(self, session: Session, is_extra: bool) -> None:
        """Who has no slot goes soon: a new daemon learns only on its first pass that nobody is in it any more."""
        if not is_extra:
            self._extra.pop(session.id, None)
            return
        now = self.world.engine.now
        since = self._extra.setdefault(session.id, now)
        late_s = now - since - self.world.excuses.since(since, now)
        self.demand(late_s <= self.GOES_S, f"{session.name} is {session.state} for {late_s:.0f} s, and nobody wants it")

    def _is_excused(self, session: Session) -> bool:
        known = self.world.daemon.machine.sessions.get(session.id)
        used = (
            known is None
            or known.vitals.attached > 0
            or known.after is After.REMOVE
            or known.state in (State.SUSPECT, State.STUCK)
        )
        return used or (session.role not in self.world.store.roles and self.world.people.wants_anew(session.id, 0.0))

    def calm(self) -> None:
        store, people = self.world.store, self.world.people
        roles = {key: role.spec for key, role in store.roles.items()}
        self.demand(roles == self._durable, f"{sorted(roles)} are there, and {sorted(self._durable)} were declared")
        for key, role in store.roles.items():
            slots = sorted(session.index for session in store.sessions.values() if session.role == key)
            self.demand(slots == sorted(role.slots), f"{key} has {slots}, and should have {role.slots}")
        for session in store.sessions.values():
            lost = session.role is not None and session.role not in roles
            self.demand(not lost or self._is_excused(session), f"{session.name} is of a role that is no more")
        resting = (session for session in store.sessions.values() if session.state is State.PARKED)
        asleep = {session.name for session in resting if session.state_since >= self._applied_at}
        steps = make_plan(people.manifest, store.roles, store.sessions.values()).steps
        left = [step for step in steps if step.do is not PlanVerb.UPDATE or step.slot not in asleep]
        self.demand(not left or not people.manifest.roles, f"a manifest that was applied leaves {left}")
