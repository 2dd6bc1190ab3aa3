"""Adopted sessions: ours while they bear our mark, left as they were found; the rest of their server is never ours."""

from __future__ import annotations

import asyncio

from vigil.core.effects import Release
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.session import Session
from vigil.daemon.act.launches import Custody
from vigil.daemon.act.signals import SURVIVOR_GRACE_S, end_processes
from vigil.daemon.base.log import log
from vigil.daemon.sense.census import Census
from vigil.kernel import process
from vigil.observe.survivors import session_of
from vigil.runtimes import Tmux


class AdoptedLaunches:
    def __init__(self, custody: Custody, tmux: Tmux, census: Census, boot: str) -> None:
        self._custody = custody
        self._tmux = tmux
        self._census = census
        self._boot = boot
        self._releases: dict[str, asyncio.Future[None]] = {}  # by launch: done once we gave it back

    def follow(self, session: Session) -> None:
        """Begin to watch an adopted session, here and through the keeper."""
        launch = session.launch
        assert launch is not None
        self._custody.knows(launch, session.spec.runtime)
        self._custody.follow(launch)
        self._custody.hand_to_keeper(launch)

    async def mark_again(self, launch: Launch) -> None:
        """Mark an adopted session again: the daemon before us may have ended too early."""
        if not await self._tmux.mark(launch):
            log.warning("an adopted session could not be marked", launch=launch.id)

    def release_of(self, launch_id: str) -> asyncio.Future[None]:
        """Return a future, done once an adopted launch is given back; ask before it is."""
        if launch_id not in self._releases:
            self._releases[launch_id] = asyncio.get_running_loop().create_future()
        return self._releases[launch_id]

    async def release(self, effect: Release) -> None:
        """Take our marks off an adopted session and stop watching it; its agent goes on."""
        launch = effect.launch
        try:
            async with self._custody.lock(launch.id):
                await self.leave(launch)
        finally:
            if (waiting := self._releases.pop(launch.id, None)) is not None:
                waiting.set_result(None)

    async def leave(self, launch: Launch) -> None:
        """Leave an adopted launch as it was found: without our marks and watches."""
        await self._tmux.unmark(launch)
        await self._custody.forget(launch)

    def _leader(self, pid: int, server: ProcessId | None) -> ProcessId | None:
        """Return a pane's root; its server names a dead pane's number too, which may be another's by now (P9)."""
        stat = process.read_stat(pid)
        is_own = stat is not None and server is not None and stat.ppid == server.pid
        return ProcessId(pid, stat.start_ticks, self._boot) if stat is not None and is_own else None

    async def end(self, launch: Launch, grace_s: float) -> list[ProcessId]:
        """End what an adopted session runs, and nothing else of its server."""
        assert launch.host is not None
        if launch.ended_at is not None:
            await self.leave(launch)
            return []
        agents = [launch.agent] if launch.agent is not None else []
        panes = await self._tmux.read_panes(launch)
        leaders = [leader for pid in panes if (leader := self._leader(pid, launch.server)) is not None]
        left = await end_processes(agents, grace_s)
        await self._custody.watch.reported(launch.id, within_s=5.0)
        await self._tmux.kill_marked(launch)
        seen = await self._census.take()
        found = [one for leader in leaders for one in session_of(leader, seen)]
        left += await end_processes([*leaders, *found], min(grace_s, SURVIVOR_GRACE_S))
        if not left:
            await self._custody.forget(launch)
        return left
