"""The simulated hook spool: what agents say of themselves, in files that outlive the daemon; some get lost, doubled or late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.sim.host import Body
from vigil.agents.generic import read_hook
from vigil.core.events import Event, Hooked
from vigil.core.model.speech import Hook

if TYPE_CHECKING:
    from tests.sim.world import World

DELAY_S = 0.05
Said = tuple[Hook, str]  # a word, and what its agent really meant


class Spool:
    """Files that wait for a daemon."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: list[Said] = []
        self._taken: dict[
            int, tuple[Event, list[Said]]
        ] = {}  # until it is durable; the event keeps its number from being used again
        self._life = 0
        self._held: Said | None = None
        self.trouble = ""  # lost, doubled, reordered
        self._planned = False

    def write(self, body: Body, payload: dict[str, Any], meant: str) -> None:
        """An agent says something."""
        world = self._world
        said = (Hook(body.launch_id, meant or "alive", world.daemon.clock(), tuple(read_hook(payload))), meant)
        if self.trouble == "lost":
            return
        if self.trouble == "reordered" and self._held is None:
            self._held = said
            return
        self._waiting += [said, said] if self.trouble == "doubled" else [said]
        if self._held is not None:
            self._waiting.append(self._held)
            self._held = None
        if not self._planned and world.daemon.runs:
            self._planned = True
            world.daemon.later(DELAY_S, self.deliver)

    def deliver(self) -> None:
        """A daemon takes in what waits; a file goes when what it said is durable, so what was not is there again."""
        self._planned = False
        world = self._world
        if self._life != world.daemon.life:
            self._life = world.daemon.life
            self._waiting = [said for _, taken in self._taken.values() for said in taken] + self._waiting
            self._taken = {}
        waiting, self._waiting = self._waiting, []
        by_launch: dict[str, list[Said]] = {}
        for said in waiting:
            by_launch.setdefault(said[0].launch_id, []).append(said)
        current = {session.launch.id for session in world.daemon.known.values() if session.launch is not None}
        for launch_id, theirs in by_launch.items():
            if launch_id in current:
                event = Hooked(launch_id, tuple(hook for hook, _ in theirs))
                self._taken[id(event)] = (event, theirs)
                world.promises.hears(launch_id, theirs)
                world.daemon.feed(event)

    def settle(self, event: Event) -> None:
        """What an event said is durable: its files go."""
        if isinstance(event, Hooked):
            self._taken.pop(id(event), None)
