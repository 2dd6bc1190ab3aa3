"""Custody: the launches in our care, from the first watch to the last file; one task at a time acts on each."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakValueDictionary

from vigil.core.events import Event, Found
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.daemon.sense.agent_files import Listening
from vigil.daemon.sense.agent_process import Finder
from vigil.daemon.sense.death import DeathWatch
from vigil.daemon.sense.outputs import Outputs
from vigil.daemon.sense.process_ends import roles_of
from vigil.home import Home
from vigil.keeper.protocol import ForgetRequest, Watch, WatchRequest
from vigil.runtimes import Runtime

FORGET_S = 2.0


class Custody:
    def __init__(
        self,
        home: Home,
        runtimes: dict[RuntimeKind, Runtime],
        keeper: KeeperLink,
        watch: DeathWatch,
        outputs: Outputs,
        finder: Finder,
        listening: Listening,
        feed: Callable[[Event], None],
    ) -> None:
        self._home = home
        self._runtimes = runtimes
        self._keeper = keeper
        self.watch = watch
        self._outputs = outputs
        self._finder = finder
        self.listening = listening
        self._feed = feed
        self._kinds: dict[str, RuntimeKind] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def knows(self, launch: Launch, kind: RuntimeKind) -> None:
        """Remember which runtime a launch lives in."""
        self._kinds[launch.id] = kind

    def runtime_of(self, launch: Launch) -> Runtime | None:
        """Return a launch's runtime, if known."""
        kind = self._kinds.get(launch.id)
        return None if kind is None else self._runtimes[kind]

    def lock(self, launch_id: str) -> asyncio.Lock:
        """Return a launch's lock: one task at a time ends or closes it."""
        return self._locks.setdefault(launch_id, asyncio.Lock())

    def follow(self, launch: Launch, exec_seen: bool = True, newborn: bool = False) -> None:
        """Watch a launch that has come to life, and its output."""
        self.watch.watch(launch, exec_seen)
        if self._kinds[launch.id] is RuntimeKind.HEADLESS:
            self._outputs.follow(launch, newborn)
        self._finder.look_for(launch, self._found)

    def _found(self, launch: Launch, event: Found) -> None:
        """Watch an agent that was found below its command, here and through the keeper."""
        launch = replace(launch, found=event.process)
        self._feed(event)
        self.watch.found(launch)
        inner = tuple(watch for watch in watches_of(launch, self._home) if watch.role == "inner")
        if inner:
            self._keeper.tell(WatchRequest(inner))

    def hand_to_keeper(self, launch: Launch) -> None:
        """Have the keeper watch a launch that it did not spawn."""
        self._keeper.tell(WatchRequest(watches_of(launch, self._home)))

    async def forget(self, launch: Launch) -> int | None:
        """Stop watching a launch; return the peak memory of its largest process in kB, if known."""
        for runtime in self._runtimes.values():
            runtime.forget(launch)
        self.watch.forget(launch.id)
        self._outputs.forget(launch.id)
        await self.listening.finish(launch.id)
        return await self._keeper_forgets(launch.id)

    async def remove(self, launch_id: str) -> bool:
        """Remove a launch's folder; say whether it is gone."""
        self._kinds.pop(launch_id, None)
        folder = self._home.launch(launch_id)
        if not folder.exists():
            return True
        await self._keeper_forgets(launch_id, removing=True)  # or it writes a last record into the folder
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return not os.path.lexists(folder)

    async def _keeper_forgets(self, launch_id: str, removing: bool = False) -> int | None:
        """Have the keeper stop watching a launch, and wait until it did."""
        request = ForgetRequest(launch_id, removing)
        if self._keeper.wedged:
            self._keeper.tell(request)
            return None
        try:
            return (await self._keeper.ask(request, timeout_s=FORGET_S)).peak_kb
        except KeeperSilent:
            return None
        except KeeperRefused as error:
            self._keeper.note_refusal(str(error))
            return None


def watches_of(launch: Launch, home: Home) -> tuple[Watch, ...]:
    """Return what the keeper must watch of a launch."""
    folder, known = str(home.launch(launch.id)), roles_of(launch).items()
    return tuple(Watch(launch.id, folder, role, process.pid, process.start_ticks) for role, process in known)
