"""Simulated readings of silent agents: they work, as far as anybody can read that; only who is stopped or hangs does not."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from tests.sim.host import Body
from vigil.core.effects import Diagnose
from vigil.core.events import Diagnosed, WatchdogsSet
from vigil.core.model.evidence import Evidence, Flag, Number, Text
from vigil.core.model.stall import Watchdog, Watchdogs

if TYPE_CHECKING:
    from tests.sim.world import World

BLIND, NOTHING = "blind", "nothing"
WAYS = ("bytes", "work", "writes", BLIND)  # how its work shows, and that it does not
EAGER = WatchdogsSet(Watchdogs(Watchdog(stall_auto_kill=True)))  # whoever is found to hang is ended


class Silences:
    """Answers what is asked of silent launches."""

    def __init__(self, world: World) -> None:
        self._world = world

    def diagnose(self, effect: Diagnose) -> None:
        """Read a launch, over a window."""
        self._world.daemon.later(effect.window_s, self._read, effect.launch.id)

    def _read(self, launch_id: str) -> None:
        body = self._world.host.bodies.get(launch_id)
        if body is not None and body.agent is not None and body.agent.alive:
            self._world.daemon.feed(Diagnosed(launch_id, self._evidence(body)))

    def _evidence(self, body: Body) -> Evidence:
        """Return what can be read: that it is stopped, or one sign of its work; some sensors fail."""
        assert body.agent is not None
        now, way = self._world.daemon.clock(), way_of(body)
        if body.agent.stopped:
            return Evidence(now, body.agent.id.pid, state=Text("T", "procfs", now), traced=Flag(False, "procfs", now))
        if way == BLIND:
            return Evidence(now, body.agent.id.pid)
        return Evidence(
            now,
            body.agent.id.pid,
            state=Text("S", "procfs", now),
            traced=Flag(False, "procfs", now),
            window_s=Number(30.0, "procfs", now),
            main_cpu=Number(0.5 if way == "work" else 0.0, "procfs", now),
            tree_cpu=Number(0.5 if way == "work" else 0.0, "procfs", now),
            main_waited=Number(0.0, "procfs", now),
            io=Number(1e6 if way == "work" else 0.0, "procfs", now),
            sockets=Number(1.0, "sock_diag", now),
            received_s=Number(5.0 if way == "bytes" else 3600.0, "sock_diag", now),
            transcript_s=Number(5.0 if way == "writes" else 3600.0, "files", now),
            unacked=Number(0.0, "sock_diag", now),
            descendants=Number(0.0, "procfs", now),
            hidden=Number(0.0, "procfs", now),
        )


def way_of(body: Body) -> str:
    """Return how the work of an agent shows now; of some nothing can ever be read."""
    way = WAYS[crc32(body.launch_id.encode()) % len(WAYS)]
    return NOTHING if body.hangs and way != BLIND else way
