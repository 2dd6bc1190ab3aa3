"""What the reaper puts to sleep: only what it saw empty and well, and whose agent has said for long that it does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from tests.sim.promises.telling import Work
from vigil.core.effects import Effect, EndLaunch
from vigil.core.events import Event, Observed, Sighted, Swept
from vigil.core.handlers.speech import KEPT_S
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import State
from vigil.core.model.speech import Hook

if TYPE_CHECKING:
    from tests.sim.world import World

HEARTBEAT = "heartbeat"


class OnlyIdle(Promise):
    """Nobody is put to sleep who is used, cannot be read, has anything open, or worked within the time to live (P2).

    And all others are: a reaper that reaps nothing is no reaper.
    """

    name = "reap"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._work: dict[str, Work] = {}
        self._worked_at: dict[str, float] = {}

    def hears(self, launch_id: str, said: list[tuple[Hook, str]]) -> None:
        for hook, meant in sorted(said, key=lambda one: one[0].at):
            if meant:
                self._work.setdefault(launch_id, Work()).hear(meant, hook.at)
            if HEARTBEAT not in (hook.name, *(one.name for one in hook.said)):
                self._worked_at[launch_id] = max(hook.at, self._worked_at.get(launch_id, 0.0))

    def decided(self, event: Event, effects: list[Effect]) -> None:
        for seen in event.observed if isinstance(event, Swept) else (event,) if isinstance(event, Observed) else ():
            if seen.active_at is not None:
                self._worked_at[seen.launch_id] = max(seen.active_at, self._worked_at.get(seen.launch_id, 0.0))
        if isinstance(event, Sighted):
            reaped = [effect.launch for effect in effects if isinstance(effect, EndLaunch) and effect.reap]
            self._check_reaped(event, reaped)
            self._check_kept(event, {launch.id for launch in reaped})

    def _check_reaped(self, event: Sighted, reaped: list[Launch]) -> None:
        seen = {glimpse.launch_id: glimpse for glimpse in event.glimpses}
        for launch in reaped:
            glimpse, now = seen[launch.id], self.world.daemon.clock()
            self.demand(glimpse.clients == 0, f"{launch.id} is reaped, and {glimpse.clients} people were seen there")
            self.demand(not glimpse.unreadable, f"{launch.id} is reaped, and {glimpse.unreadable}")
            if launch.id in self._work:
                says = self._work[launch.id].shown(now)
                self.demand("idle" in says, f"{launch.id} is reaped, and its agent says {sorted(says)}")
            quiet_s = now - self._last_work(launch) + KEPT_S  # what was not durable yet died with a daemon
            self.demand(quiet_s >= event.policy.idle_ttl_s, f"{launch.id} is reaped {quiet_s:.0f} s after it worked")

    def _last_work(self, launch: Launch) -> float:
        """Return when a launch worked last, by what it said, what was seen, and what it printed while nobody saw it."""
        body, offset = self.world.host.bodies.get(launch.id), self.world.daemon.offset
        printed_at = offset + body.printed_at if body is not None and body.printed_at is not None else 0.0
        return max(self._worked_at.get(launch.id, 0.0), printed_at, launch.started_at or 0.0)

    def _check_kept(self, event: Sighted, reaped: set[str]) -> None:
        """Whoever is kept is used, in doubt, busy, or worked of late."""
        now, seen = self.world.daemon.clock(), {glimpse.launch_id: glimpse for glimpse in event.glimpses}
        for session in self.world.daemon.machine.sessions.values():
            launch, process = session.launch, session.vitals.axes.get(Axis.PROCESS)
            if launch is None or launch.id in reaped or session.state is not State.RUNNING:
                continue
            glimpse, work = seen.get(launch.id), self._work.get(launch.id)
            if glimpse is None or glimpse.clients != 0 or work is None or work.shown(now) != {"idle"}:
                continue
            quiet_s = now - self._last_work(launch)
            readable = process is not None and process.value in (AxisValue.ALIVE, AxisValue.STOPPED)
            rests = readable and quiet_s >= event.policy.idle_ttl_s
            self.demand(not rests, f"{session.name} is idle for {quiet_s:.0f} s, and is kept")
