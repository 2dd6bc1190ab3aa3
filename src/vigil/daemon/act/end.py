"""The end of a launch: Vigil ends it whole (agent, survivors, server), unless a person uses it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from vigil.core.effects import CloseLaunch, EndLaunch
from vigil.core.events import Attended, Closed, Ended, Spared, Weighed
from vigil.core.model.conversation import Transcript
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.session import Session
from vigil.core.model.sighting import Guard
from vigil.daemon.act.adopted import AdoptedLaunches
from vigil.daemon.act.birth import TICKS_A_SECOND, born_in
from vigil.daemon.act.isolation import Isolation
from vigil.daemon.act.launches import Custody
from vigil.daemon.act.signals import SURVIVOR_GRACE_S, end_processes, is_alive, send
from vigil.daemon.act.strays import remove_socket
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.daemon.sense.census import Census
from vigil.daemon.sense.transcripts import Conversations
from vigil.home import Home
from vigil.kernel import durable
from vigil.kernel.clients import read_clients
from vigil.kernel.process import is_other_boot, read_peak_kb
from vigil.observe.process import find_named, read_group, read_process
from vigil.observe.survivors import survivors_of
from vigil.runtimes import socket_of
from vigil.runtimes.tmux.guard import KILLED, SPARED

SERVER_GRACE_S = 2.0
UNBORN_GRACE_S = 0.5  # no agent is among them
SERVER_ENDS_KB = 1024  # a tmux server takes a little more while it ends (measured: 64 kB)
ROUNDS = 4  # survivors may start survivors while they are ended


def why_attended(launch: Launch, home: Home) -> str:
    """Say who or what uses a launch's pane, which forbids its end; else empty."""
    if launch.host is None and launch.server is not None:
        clients = read_clients()
        if clients is None:
            return "nobody can tell who is attached to its pane"
        if clients.get(socket_of(home, launch), 0):
            return "a person is attached to its pane"
    if (
        launch.ended_at is not None
        and launch.process is not None
        and launch.names
        and find_named(launch.process, launch.names) is not None
    ):
        return f"{' or '.join(launch.names)} runs in the pane of its last one"
    return ""


@dataclass(eq=False, repr=False)
class Ending:
    _ground: Ground
    _custody: Custody
    _adopted: AdoptedLaunches
    _conversations: Conversations
    _session_of: Callable[[str], Session | None]
    _census: Census
    _isolation: Isolation

    async def end(self, effect: EndLaunch) -> None:
        """End a launch's agent, survivors and server, verified; durably intended before (P8)."""
        launch = effect.launch
        async with self._custody.lock(launch.id):
            if effect.unless_attended and not effect.reap and (why := why_attended(launch, self._ground.home)):
                self._ground.feed(Attended(launch.id, why))
                return
            if effect.reap and (spared := await self._spared(launch, effect.guard)) is not None:
                self._ground.feed(spared)
                return
            left = await self._end_all(launch, effect.grace_s)
            transcript = await self._read_conversation(launch.id)
        if left:
            pids = ", ".join(str(process.pid) for process in left)
            words = f"{len(left)} of its processes live on after KILL, or cannot be read (pid {pids})"
            self._ground.feed(Ended(launch.id, ok=False, why=words))
        else:
            self._ground.feed(Ended(launch.id, ok=True, transcript=transcript))

    async def end_unborn(self, launch: Launch) -> list[ProcessId]:
        """End what there is of a launch that never began; return what lives on."""
        async with self._custody.lock(launch.id):
            return await self._end_all(launch, UNBORN_GRACE_S)

    async def _spared(self, launch: Launch, guard: Guard | None) -> Spared | None:
        """Compare a launch once more before its end; return why it is spared, else None."""
        agent = launch.agent
        if agent is None or not is_alive(agent, self._ground.boot):
            return None  # it died meanwhile: no person uses it
        if guard is None:
            return Spared(launch.id, "it was not compared before the daemon ended; the next sweep looks at it again")
        runtime = self._custody.runtime_of(launch)
        assert runtime is not None
        done, why = await runtime.reap(launch, guard)
        if done == KILLED or not is_alive(agent, self._ground.boot):
            return None
        return Spared(launch.id, why) if done == SPARED else Spared(launch.id, f"unknown: {why}", unsure=True)

    async def _end_all(self, launch: Launch, grace_s: float) -> list[ProcessId]:
        """End the agent, then its survivors in rounds, then its server; return what lives on."""
        if launch.host is not None:
            return await self._adopted.end(launch, grace_s)
        agent = launch.process or self._find_agent(launch)
        agents = [process for process in (launch.found, agent) if process is not None]
        if launch.ended_at is not None:  # the agent is dead: its rest gets no time to finish
            grace_s = min(grace_s, SURVIVOR_GRACE_S)
        left = await end_processes(dict.fromkeys(agents), grace_s)
        if launch.process is not None and not left:
            await self._custody.watch.reported(launch.id, within_s=5.0)
        spare = [launch.server] if launch.server else []
        for _ in range(ROUNDS):
            found = survivors_of(launch, spare, await self._census.take(), self._ticks(launch.ended_at))
            if not found:
                break
            log.info("ending survivors", launch=launch.id, pids=[process.pid for process in found])
            left = await end_processes(found, min(grace_s, SURVIVOR_GRACE_S))
        else:
            if not self._isolation.folder_of(launch) or await self._isolation.end(launch):
                return left or found
        if not await self._end_server(launch):
            return [launch.server] if launch.server else []
        return left or await self._isolation.end(launch)

    def _find_agent(self, launch: Launch) -> ProcessId | None:
        """Find the agent to end when the keeper did not tell us of its birth."""
        born = durable.read_json(str(self._ground.home.launch(launch.id) / "born.json"))
        if born is None or is_other_boot(str(born.get("boot", self._ground.boot)), self._ground.boot):
            return None
        found = born_in(born, launch.id)
        return None if found is None else ProcessId(*found.agent, self._ground.boot)

    async def close(self, effect: CloseLaunch) -> None:
        """End a dead agent's server and keep its last screen; its children stay."""
        launch = effect.launch
        async with self._custody.lock(launch.id):
            gone = await self._end_server(launch)
            self._isolation.tidy(self._isolation.folder_of(launch))
            transcript = await self._read_conversation(launch.id)
        now = self._ground.now()
        facts = [read_process(Axis.RUNTIME, launch.root, self._ground.boot, now)] if launch.root else []
        if launch.root is None and launch.process is not None:
            facts = [read_group(launch.process, Fact(Axis.PROCESS, AxisValue.DEAD, "pidfd", now, conclusive=True), now)]
        if launch.server:
            facts.append(read_process(Axis.SERVER, launch.server, self._ground.boot, now))
        self._ground.feed(Closed(launch.id, tuple(facts), gone, transcript))

    async def _end_server(self, launch: Launch) -> bool:
        """Keep the screen, end a launch's tmux server, and say whether it is gone."""
        if launch.host is not None:
            await self._adopted.leave(launch)
            return True
        gone, own_kb = True, None
        if launch.server is not None and is_alive(launch.server, self._ground.boot):
            runtime = self._custody.runtime_of(launch)
            if runtime is not None:
                with contextlib.suppress(OSError):
                    await runtime.keep_screen(launch)
            own_kb = read_peak_kb(launch.server.pid) if is_alive(launch.server, self._ground.boot) else None
            send(launch.server, signal.SIGCHLD)  # before 3.6 it may have missed its pane's end, and not reaped it
            gone = not await end_processes([launch.server], SERVER_GRACE_S)
        if gone:
            self._weigh(launch, await self._custody.forget(launch), own_kb)
            remove_socket(self._ground.home.server_path(launch.id))
        return gone

    def _weigh(self, launch: Launch, peak_kb: int | None, own_kb: int | None) -> None:
        """At a launch's end, feed its peak memory as counted; a server's count includes itself."""
        known = launch.server is None or (own_kb is not None and peak_kb is not None and peak_kb > own_kb + SERVER_ENDS_KB)
        if peak_kb is not None and known:
            self._ground.feed(Weighed(launch.id, peak_kb * 1024))

    async def _read_conversation(self, launch_id: str) -> Transcript | None:
        session = self._session_of(launch_id)
        return None if session is None else await self._conversations.read(session)

    async def survivors(self, launch: Launch) -> list[ProcessId]:
        """Return the processes that outlived the end of their launch, except its pane."""
        if launch.host is not None:
            return []  # nothing else there is ours
        spare = [process for process in (launch.server, launch.root, launch.process) if process is not None]
        return survivors_of(launch, spare, await self._census.take(), self._ticks(launch.ended_at))

    def _ticks(self, at: float | None) -> float | None:
        """Return a launch's end in the kernel's ticks, a little late rather than early."""
        if at is None:
            return None
        booted_at = self._ground.now() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return (at - booted_at + 1.0) * TICKS_A_SECOND
