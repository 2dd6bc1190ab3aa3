"""Spools of sandboxes: a confined agent sees only its own, and its hooks are moved from there into the spool of all.

At a bounded pace: one that floods fills its own folder, and loses its own oldest hooks."""

from __future__ import annotations

import asyncio
import contextlib
import os

from vigil.daemon.base.log import log
from vigil.home import Home
from vigil.kernel.inotify import CAME, IN_DONT_FOLLOW, IN_ONLYDIR
from vigil.kernel.theirs import opened_folder
from vigil.observe.inotify import Watches
from vigil.threads import SANDBOXES, in_thread

SLICE = 100
PAUSE_S = 0.05
RETRY_S = 1.0
WAITING = 2000  # files that may wait in one folder


class SandboxSpools:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._watches: Watches[str] = Watches(self._changed)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def follow(self, launch_id: str) -> None:
        """Move hooks out of a sandboxed launch's spool from now on, also those that wait."""
        if (self._home.launch(launch_id) / "spool").is_dir():
            self._changed(launch_id)

    async def finish(self, launch_id: str) -> None:
        """Move the last hooks out of a launch's sandbox spool, and stop."""
        task = self._tasks.pop(launch_id, None)
        if task is not None:
            task.cancel()
        self._watches.forget([launch_id])
        with contextlib.suppress(OSError):
            await in_thread(SANDBOXES, self._move, launch_id, WAITING, about=launch_id)

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._watches.close()

    def _changed(self, launch_id: str) -> None:
        if launch_id in self._tasks:
            self._again.add(launch_id)
        else:
            self._tasks[launch_id] = asyncio.create_task(self._run(launch_id))

    async def _run(self, launch_id: str) -> None:
        """Watch a sandbox's spool for a change, then move its hooks, until none is left."""
        left = True
        while left:
            self._again.discard(launch_id)
            try:
                left = await in_thread(SANDBOXES, self._watch_and_move, launch_id, about=launch_id)
            except FileNotFoundError:
                break  # the launch is gone
            except NotADirectoryError:
                log.warning("hooks of a sandbox not read: it put something else in the place of their folder", launch=launch_id)
                break
            except OSError as error:
                log.warning("hooks of a sandbox not read", launch=launch_id, why=str(error), next_try_s=RETRY_S)
                await asyncio.sleep(RETRY_S)
            await asyncio.sleep(PAUSE_S)
            left = left or launch_id in self._again
        self._tasks.pop(launch_id, None)  # without a pause since the last look: the next change begins anew

    def _watch_and_move(self, launch_id: str) -> bool:
        self._watches.ask(str(self._home.launch(launch_id) / "spool" / "new"), CAME | IN_ONLYDIR | IN_DONT_FOLLOW, launch_id)
        return self._move(launch_id, SLICE)

    def _move(self, launch_id: str, most: int) -> bool:
        """Move a sandbox's oldest hooks by descriptors, never through links; say whether others wait."""
        spools = self._home.launch(launch_id) / "spool", self._home.spool
        with opened_folder(spools[0], "new") as theirs, opened_folder(spools[1], "new") as ours:
            names = _waiting(theirs)
            for name in names[:-WAITING]:
                _remove(name, theirs)
            names = names[-WAITING:]
            for name in names[:most]:
                try:
                    os.rename(name, f"{launch_id}-{name}", src_dir_fd=theirs, dst_dir_fd=ours)
                except OSError:
                    _remove(name, theirs)
        return len(names) > most


def _waiting(folder: int) -> list[str]:
    """Return a sandbox's hooks that are whole, the oldest first."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue  # still being written
            with contextlib.suppress(FileNotFoundError):  # it took that one back
                found.append((entry.stat(follow_symlinks=False).st_ctime_ns, entry.name))
    return [name for _, name in sorted(found)]


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)
