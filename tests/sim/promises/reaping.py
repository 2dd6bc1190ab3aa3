"""What the reaper puts to sleep: only what it saw empty and well, and whose agent has said for long that it does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from tests.sim.promises.telling import Work
from vigil.core.effects import Effect, EndLaunch
from vigil.core.events import Event, Sighted
from vigil.core.hearing import KEPT_S
from vigil.core.said import Hook

if TYPE_CHECKING:
    from tests.sim.world import World

HEARTBEAT = "heartbeat"


class OnlyIdle(Promise):
    """Nobody is put to sleep who is used, cannot be read, has anything open, or worked within the time to live (P2)."""

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
        if not isinstance(event, Sighted):
            return
        seen = {glimpse.launch_id: glimpse for glimpse in event.glimpses}
        for launch in [effect.launch for effect in effects if isinstance(effect, EndLaunch) and effect.reap]:
            glimpse, now = seen[launch.id], self.world.daemon.clock()
            self.demand(glimpse.clients == 0, f"{launch.id} is reaped, and {glimpse.clients} people were seen there")
            self.demand(not glimpse.unreadable, f"{launch.id} is reaped, and {glimpse.unreadable}")
            if launch.id in self._work:
                says = self._work[launch.id].shown(now)
                self.demand("idle" in says, f"{launch.id} is reaped, and its agent says {sorted(says)}")
            worked_at = max(self._worked_at.get(launch.id, 0.0), launch.started_at or 0.0)
            quiet_s = now - worked_at + KEPT_S  # what was not durable yet died with a daemon
            self.demand(quiet_s >= event.policy.idle_ttl_s, f"{launch.id} is reaped {quiet_s:.0f} s after it worked")
