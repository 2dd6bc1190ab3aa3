"""The simulated keeper: spawns, and writes down how what it watches ended, whether a daemon listens or not."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.sim.host import Body
from tests.sim.sockets import KEEPER
from vigil.core.events import KeeperHeard
from vigil.core.model.incident import IncidentKind

if TYPE_CHECKING:
    from tests.sim.world import World

RESTART_S = 0.5  # the daemon starts another one
DEAF_S = 3.0  # so long the daemon waits for the socket of a keeper that lives
AGAIN_S = 0.5  # one that hangs is asked so often
SILENT_S = 5.0  # so long without an answer is worth an incident


class Keeper:
    """One keeper after another."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.generation = 1
        self.lives = True
        self.stopped = False
        self._late: list[Body] = []

    @property
    def answers(self) -> bool:
        """Say whether it does its work now, and the daemon can ask it."""
        return self.lives and not self.stopped and self._world.sockets.linked

    def record(self, body: Body) -> None:
        """Write down how an agent ended; a stopped keeper does so when it goes on, a dead one never."""
        if not self.lives or not (body.keeper == self.generation or self._world.kernel_tells):
            return  # what it did not spawn it can only ask the kernel about
        if body.agent is not None and body.agent.signal == signal.SIGKILL:
            body.oom = self._world.memory.account(body)
        if self.stopped:
            self._late.append(body)
        else:
            body.kept.add("keeper")

    def kill(self) -> None:
        """End it; the daemon notices at once and starts another."""
        if self.lives:
            self.lives = self.stopped = self._world.sockets.linked = False
            self._late.clear()
            self._world.daemon.report(IncidentKind.KEEPER_LOST, "the keeper is gone")
            self._world.daemon.feed(KeeperHeard("the keeper is gone"))
            self._world.daemon.later(RESTART_S, self.connected)

    def stop(self, for_s: float) -> None:
        """Stop it for a while."""
        if self.lives and not self.stopped:
            self.stopped = True
            self._world.engine.after(for_s, self._go_on, self.generation)
            self._world.daemon.later(SILENT_S, self._missed, self.generation)

    def _missed(self, generation: int) -> None:
        if generation == self.generation:
            self.note_silent()

    def note_silent(self) -> None:
        """The daemon waited for an answer, and none came."""
        if self.stopped:
            self._world.daemon.report(IncidentKind.KEEPER_LOST, "the keeper does not answer")
            self._world.daemon.feed(KeeperHeard("the keeper does not answer"))

    def _go_on(self, generation: int) -> None:
        if generation == self.generation and self.stopped:
            self.stopped = False
            for body in self._late:
                body.kept.add("keeper")
            self._late.clear()
            self._world.sockets.go_on(KEEPER)
            if self._world.sockets.linked:
                self._world.daemon.over(IncidentKind.KEEPER_LOST, "the keeper answers")
                self._world.daemon.later(AGAIN_S, self._answers)

    def reboot(self) -> None:
        """A new boot has no keeper until a daemon starts one."""
        self.lives = self.stopped = False
        self._late.clear()

    def connected(self) -> None:
        """A daemon is there: it has a keeper, or starts one, which watches what it did not spawn."""
        if not self.lives:
            self.generation += 1
            self.lives = self._world.sockets.linked = True
            self._world.sockets.bound(KEEPER)
        if not self._world.sockets.linked:  # its lock says that it lives
            self._world.daemon.later(DEAF_S, self._unreachable, self.generation)
        elif self.stopped:
            self._world.daemon.later(SILENT_S, self._missed, self.generation)
        else:
            self._world.daemon.over(IncidentKind.KEEPER_LOST, "a keeper answers")
            self._answers()

    def found(self) -> None:
        """It has made its socket anew: a daemon without a line to it has one now."""
        if self.lives and not self._world.sockets.linked:
            self._world.sockets.linked = True
            self._world.daemon.over(IncidentKind.KEEPER_LOST, "the keeper answers")
            self._answers()

    def _answers(self) -> None:
        if self.answers:
            self._world.daemon.feed(KeeperHeard())

    def _unreachable(self, generation: int) -> None:
        if generation == self.generation and not self._world.sockets.linked:
            self._world.daemon.report(IncidentKind.KEEPER_LOST, "the keeper cannot be reached")
            self._world.daemon.feed(KeeperHeard("the keeper cannot be reached"))
