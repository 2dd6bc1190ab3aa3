"""Isolation: a cgroup for each launch, where the keeper may have some: all that descends from it ends with it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from vigil.config.values import IsolationConfig
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.limits import UNLIMITED, LaunchLimits
from vigil.core.rules.limits import files_of, why_not_kept
from vigil.daemon.act.signals import end_processes
from vigil.kernel import cgroups
from vigil.kernel.cgroups import CgroupPlace
from vigil.kernel.descent import instance_of
from vigil.kernel.process import read_start_ticks
from vigil.threads import ENDS, in_thread

OFF = CgroupPlace(why="cgroups = false in [isolation]")
NO_KEEPER = CgroupPlace(why="there is no keeper at the moment")


class Isolation:
    def __init__(self, spool: str, boot: str, keeper: Callable[[], int | None], config: Callable[[], IsolationConfig]) -> None:
        self._instance = instance_of(spool)
        self._boot = boot
        self._keeper = keeper
        self._config = config
        self._known: tuple[tuple[int, str], CgroupPlace] | None = None
        self._closed = False
        self._lock = threading.Lock()  # launches begin in threads

    def place(self) -> CgroupPlace:
        """Return where launches are isolated in cgroups; a new keeper may be elsewhere."""
        wanted, keeper = self._config(), self._keeper()
        if not wanted.cgroups or keeper is None or self._closed:
            return NO_KEEPER if wanted.cgroups else OFF
        key = (keeper, wanted.cgroup_root)
        with self._lock:
            known = self._known
            if known is None or known[0] != key or not os.path.isdir(known[1].folder or "/"):
                known = (key, cgroups.prepare(self._instance, *key))
                if self._known is None:  # later, an empty one may be that of a launch under way
                    self._remove_empty(known[1].folder)
                self._known = known
            return known[1]

    def why_not(self, limits: LaunchLimits) -> str | None:
        """Return why isolation refuses a launch with these limits; None if it does not."""
        if limits == UNLIMITED or self._config().best_effort:
            return None
        place = self.place()
        return why_not_kept(limits, place.controllers, place.why)

    def begin(self, launch_id: str, limits: LaunchLimits) -> tuple[str, bool]:
        """Make an isolated launch's cgroup; return its folder, if any, and whether limits need it."""
        place, best_effort = self.place(), self._config().best_effort
        if (why := self.why_not(limits)) is not None:
            raise ValueError(why)
        if not place.folder:
            return "", False
        folder, files = os.path.join(place.folder, launch_id), files_of(limits, place.controllers)
        try:
            cgroups.make(folder, files)
        except OSError as error:
            if files and not best_effort:
                raise ValueError(f"its cgroup cannot be made: {error.strerror} ({error.filename})") from None
            return "", False
        return folder, bool(files) and not best_effort

    async def end(self, launch: Launch) -> list[ProcessId]:
        """Kill what is left in a launch's cgroup, and remove it; return what lives on."""
        folder = self.folder_of(launch)
        if not folder:
            return []
        found = [
            ProcessId(pid, ticks, self._boot)
            for pid in await in_thread(ENDS, cgroups.read_members, folder, about=folder)
            if pid != self._keeper()
            and (ticks := read_start_ticks(pid)) is not None
            and cgroups.read_launch(pid, self._instance) == launch.id  # asked after: its number is still its own
        ]
        if found:
            await in_thread(ENDS, cgroups.kill, folder, self._keeper(), about=folder)
        left = await end_processes(found, 0.0)
        self.tidy(folder)
        return left

    def folder_of(self, launch: Launch) -> str:
        """Return the folder of a launch's cgroup; empty unless one bears its name."""
        path = launch.cgroup or os.path.join(self.place().folder, launch.id)
        parent = os.path.basename(os.path.dirname(path))
        named = os.path.basename(path) == launch.id and parent == f"{cgroups.PREFIX}{self._instance}"
        return path if named and os.path.isdir(path) else ""

    def close(self) -> None:
        """End isolation: remove our folder of cgroups if no launch is left in it."""
        place, self._closed = self.place(), True  # a last question must not make the folder again
        self.tidy(place.folder)

    @staticmethod
    def tidy(folder: str) -> None:
        """Remove a cgroup in which nothing lives."""
        if folder and not cgroups.is_populated(folder):
            cgroups.remove(folder)

    def _remove_empty(self, folder: str) -> None:
        """Remove the cgroups of launches that ended while no daemon ran."""
        for name in os.listdir(folder) if folder else []:
            if os.path.isdir(path := os.path.join(folder, name)):
                self.tidy(path)
