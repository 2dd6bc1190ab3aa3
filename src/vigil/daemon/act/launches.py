"""Launches in our care, from the first watch to the last file; one task at a time acts on each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from vigil.core.events import Found
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.daemon.sense.agent_files import Listening
from vigil.daemon.sense.agent_process import Finder
from vigil.daemon.sense.death import DeathWatch
from vigil.daemon.sense.outputs import Outputs
from vigil.daemon.sense.process_ends import roles_of
from vigil.daemon.sense.sandbox_spools import SandboxSpools
from vigil.home import Home
from vigil.keeper.protocol import ForgetRequest, Watch, WatchRequest
from vigil.kernel.theirs import remove_tree
from vigil.runtimes import Runtime
from vigil.threads import FOLDERS, in_thread

FORGET_S = 2.0


@dataclass(eq=False, repr=False)
class Custody:
    _ground: Ground
    _runtimes: dict[RuntimeKind, Runtime]
    _keeper: KeeperLink
    watch: DeathWatch
    _outputs: Outputs
    _finder: Finder
    listening: Listening
    _spools: SandboxSpools
    _kinds: dict[str, RuntimeKind] = field(default_factory=dict, init=False)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)

    def knows(self, launch: Launch, kind: RuntimeKind) -> None:
        """Remember which runtime a launch in our care lives in."""
        self._kinds[launch.id] = kind

    def runtime_of(self, launch: Launch) -> Runtime | None:
        kind = self._kinds.get(launch.id)
        return None if kind is None else self._runtimes[kind]

    def lock(self, launch_id: str) -> asyncio.Lock:
        """Return the lock of a launch in our care: one task at a time acts."""
        return self._locks.setdefault(launch_id, asyncio.Lock())

    def follow(self, launch: Launch, exec_seen: bool = True, newborn: bool = False) -> None:
        """Take a launch that has come alive into our care: watch it and its output."""
        self.watch.watch(launch, exec_seen)
        if self._kinds[launch.id] is RuntimeKind.HEADLESS:
            self._outputs.follow(launch, newborn)
        self._finder.look_for(launch, self._found)
        self._spools.follow(launch.id)

    def _found(self, launch: Launch, event: Found) -> None:
        """Take an agent found below its command into our care, and the keeper's."""
        launch = replace(launch, found=event.process)
        self._ground.feed(event)
        self.watch.found(launch)
        inner = tuple(watch for watch in watches_of(launch, self._ground.home) if watch.role == "inner")
        if inner:
            self._keeper.tell(WatchRequest(inner))

    def hand_to_keeper(self, launch: Launch) -> None:
        """Have the keeper watch a launch in our care that it did not spawn."""
        self._keeper.tell(WatchRequest(watches_of(launch, self._ground.home)))

    async def forget(self, launch: Launch) -> int | None:
        """Let a launch go from our care; return its largest process's peak memory in kB."""
        for runtime in self._runtimes.values():
            runtime.forget(launch)
        self.watch.forget(launch.id)
        self._outputs.forget(launch.id)
        await self._spools.finish(launch.id)
        await self.listening.finish(launch.id)
        return await self._keeper_forgets(launch.id)

    def let_go(self, launch_ids: Iterable[str]) -> None:
        """Forget in which runtime launches lived that leave our care with their session."""
        for launch_id in launch_ids:
            self._kinds.pop(launch_id, None)

    async def remove(self, launch_id: str) -> bool:
        """Remove the folder of a launch that leaves our care; say whether it is gone."""
        self._kinds.pop(launch_id, None)
        folder = self._ground.home.launch(launch_id)
        if not os.path.lexists(folder):
            return True
        await self._keeper_forgets(launch_id, removing=True)  # or it writes a last record into the folder
        if folder.is_symlink():  # its files lie elsewhere then
            return False
        try:
            return await in_thread(FOLDERS, remove_tree, folder, about=launch_id)
        except OSError:  # also Hangs: what is left is no fault of another launch
            return False

    async def _keeper_forgets(self, launch_id: str, removing: bool = False) -> int | None:
        """Have the keeper stop watching a launch that leaves our care, and wait for it."""
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
    folder, known = str(home.launch(launch.id)), roles_of(launch).items()
    return tuple(Watch(launch.id, folder, role, process.pid, process.start_ticks) for role, process in known)
