"""Shifts: what serves is not taken away before its replacement is ready, and every shift ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Interrupt, Persist
from vigil.core.events import Event, Hooked, Observed, ShiftAborted
from vigil.core.model.death import Intent, IntentVerb
from vigil.core.model.reading import Axis
from vigil.core.model.restart import After
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.team import Phase, Role, Shift

if TYPE_CHECKING:
    from tests.sim.world import World

RESTS = (State.STOPPED, State.SUCCEEDED, State.PARKED)


class Rolling(Promise):
    """Old replicas are drained only after every new one was ready; a shift that was given up leaves them as they are.

    What rests keeps its slot. Who is busy is interrupted first, who is not is not disturbed.
    """

    name = "shift"
    SETTLED_S = 10.0
    QUIET = ("idle", "waiting-human", "waiting-timer")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._heard: dict[str, float] = {}  # when a launch gave a sign of its own

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Hooked):
            self._note(event.launch_id, max(hook.at for hook in event.hooks))
        elif isinstance(event, Observed) and event.active_at is not None:
            self._note(event.launch_id, event.active_at)
        change = effects[0] if effects and isinstance(effects[0], Persist) else None
        if change is None:
            return
        for role in change.roles:
            self._follow(self.world.daemon.was_role(role.key), role)
        interrupted = {effect.launch.id for effect in effects if isinstance(effect, Interrupt)}
        for intent in change.intents:
            if intent.verb == IntentVerb.SHIFT:
                self._check_intent(intent, intent.launch_id in interrupted)

    def _note(self, launch_id: str, at: float) -> None:
        self._heard[launch_id] = max(at, self._heard.get(launch_id, 0.0))

    def _follow(self, was: Role | None, role: Role) -> None:
        before, after = was.shift if was is not None else None, role.shift
        if after is not None and after.phase is not Phase.WAITING and (before is None or before.phase is Phase.WAITING):
            self._check_begun(role, after)
        if after is not None and after.phase is Phase.DRAINING and (before is None or before.phase is not Phase.DRAINING):
            for index in after.new:
                self._check_ready(role, index)

    def _check_begun(self, role: Role, shift: Shift) -> None:
        """All that could run is replaced, and nothing else."""
        were = {session.index: session for session in self.world.daemon.were(role.key) if session.after is not After.REMOVE}
        runs = {index for index, session in were.items() if session.state not in RESTS and index in role.slots}
        self.demand(set(shift.old) == runs, f"{role.key}: {shift.old} are shifted, and {sorted(runs)} were to be")
        self.demand(len(shift.new) == len(shift.old), f"{role.key}: {shift.new} take the place of {shift.old}")

    def _check_ready(self, role: Role, index: int) -> None:
        session = next((one for one in self.world.daemon.replicas(role.key) if one.index == index), None)
        launch = session.launch if session is not None else None
        told = f"{role.key}: the old are drained, and its slot {index} is not ready"
        if session is not None and session.state in RESTS:
            return
        up = session is not None and session.state is State.RUNNING and launch is not None and launch.started_at is not None
        self.demand(up, told)
        assert launch is not None and launch.started_at is not None
        spoke = self._heard.get(launch.id, 0.0) >= launch.started_at
        quiet = not role.spec.speaks and role.spec.health is None
        settled = self.world.daemon.clock() - launch.started_at >= self.SETTLED_S - 0.01
        self.demand(spoke or (quiet and settled), told)

    def _check_intent(self, intent: Intent, interrupted: bool) -> None:
        session = self.world.daemon.was(intent.session_id) or self.world.daemon.known.get(intent.session_id)
        if session is None or session.role is None:
            return
        was, role = self.world.daemon.was_role(session.role), self.world.daemon.roles.get(session.role)
        before, after = was.shift if was else None, role.shift if role else None
        given_up = before is not None and after is None and role is not None and not (role.shifted and role.shifted.done)
        rejected = given_up and before is not None and session.index in before.new
        drained = after is not None and after.phase is Phase.DRAINING and session.index in after.old
        homeless = role is not None and after is None and session.index not in role.slots
        self.demand(
            rejected or drained or homeless, f"{session.name} is drained by a shift that is at {before} and then {after}"
        )
        if drained and role is not None and after is not None:
            new = [one for one in self.world.daemon.replicas(role.key) if one.index in after.new]
            dead = [one.name for one in new if self._died(one)]
            self.demand(not dead, f"{session.name} is drained, and {dead} did not stay up")
        if session.launch is not None and session.launch.id == intent.launch_id:  # else it is being launched just now
            self._check_disturbed(session, interrupted)

    def _check_disturbed(self, session: Session, interrupted: bool) -> None:
        activity = self.world.daemon.known.get(session.id, session).vitals.axes.get(Axis.ACTIVITY)
        quiet = activity is not None and activity.value in self.QUIET
        launch, now = session.launch, self.world.daemon.known.get(session.id, session)
        born = launch is not None and launch.started_at is not None and session.state in ALIVE
        born = born and now.launch is not None and now.launch.ended_at is None
        told = f"{session.name} is {activity.value if activity else 'unknown'}"
        self.demand(not born or interrupted != quiet, f"{told}, and is {'' if interrupted else 'not '}interrupted")

    @staticmethod
    def _died(session: Session) -> bool:
        return session.state not in ALIVE and session.last_death is not None and session.last_death.charged


class ShiftEnds(Promise):
    """Every shift ends within the timeouts of its phases, whatever dies or hangs; no role waits for nobody."""

    name = "P5"
    SLACK_S = 5.0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._since: dict[str, tuple[Shift, float]] = {}

    def written(self, change: Persist) -> None:
        for role in change.roles:
            before = self._since.get(role.key)
            if role.shift is None:
                self._check(role.key)
                self._since.pop(role.key, None)
            elif before is None or before[0].phase is not role.shift.phase:
                self._check(role.key)
                self._since[role.key] = (role.shift, self.world.engine.now)
        for key in change.removed_roles:
            self._since.pop(key, None)

    def decided(self, event: Event, effects: list[Effect]) -> None:
        roles = self.world.daemon.roles
        changed = any(isinstance(effect, Persist) and (effect.roles or effect.removed_roles) for effect in effects)
        for role in roles.values() if changed or isinstance(event, ShiftAborted) else ():
            if role.shift is not None and role.shift.phase is Phase.WAITING:
                place, team = role.shift.place, role.spec.team
                others = [one.shift for one in roles.values() if one.spec.team == team and one.shift is not None]
                self.demand(any(shift.place < place for shift in others), f"{role.key} waits to be shifted, behind nobody")

    def _check(self, key: str) -> None:
        if key not in self._since:
            return
        shift, since = self._since[key]
        now = self.world.engine.now
        late_s = now - since - shift.timeout_s - self.world.excuses.since(since, now) - self.SLACK_S
        self.demand(shift.phase is Phase.WAITING or late_s <= 0, f"the shift of {key} is {shift.phase} {late_s:.0f} s too long")

    def calm(self) -> None:
        for role in self.world.store.roles.values():
            self.demand(role.shift is None, f"{role.key} is still being shifted: {role.shift}")
