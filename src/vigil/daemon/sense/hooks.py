"""Hooks: takes in the spool's events at a bounded pace, also while the store hangs: a call for a person must not wait (P6).

A file goes only once its words are durable, so a daemon that dies in between loses nothing (P10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from vigil.core.events import Event, Hooked, Noted
from vigil.core.machine import Machine
from vigil.core.model.speech import Hook, Said
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.hook_key import HookKey
from vigil.daemon.base.log import log
from vigil.daemon.sense.agent_files import Listening
from vigil.observe.inotify import FolderWatch
from vigil.observe.spool import IsTheirs, ReadSaid, Spool, TakenHooks
from vigil.threads import HOOKS, begin, in_thread

SLICE = 200
PAUSE_S = 0.05  # after each slice, however many wait: the loop has other work
HELD = 1000  # files that may wait for the store; the next ones stay in the spool
RETRY_S = 1.0
SPOOL = "spool"  # one thread at a time reads and clears it
LOOK_S = 60.0  # without a notice: a watch ends with its folder


class HookReader:
    """Reads what a hook means, by its agent's adapter, and follows the conversation it names."""

    def __init__(self, machine: Machine, listening: Listening, key: HookKey) -> None:
        self._machine = machine
        self._key = key
        self._listening = listening
        self._loop = asyncio.get_running_loop()

    def is_current(self, launch_id: str) -> bool:
        """Say whether the launch that sent a hook is still a session's."""
        return self._machine.of_launch(launch_id) is not None

    def is_theirs(self, launch_id: str, token: str) -> bool | None:
        """Say whether a hook is of its named launch; None if no session has that."""
        session = self._machine.of_launch(launch_id)
        return None if session is None or session.launch is None else self._key.fits(session.launch, token)

    def read(self, launch_id: str, payload: Mapping[str, Any]) -> tuple[Said, ...]:
        """Return what a hook says, and follow the conversation that it names."""
        session = self._machine.of_launch(launch_id)
        if session is None or session.launch is None:
            return ()
        said = self._listening.read_hook(session.spec.agent, payload)
        named = next((one.conversation for one in reversed(said) if one.conversation and not one.subagent), "")
        if named:
            self._loop.call_soon_threadsafe(self._listening.converses, session, session.launch, named)
        return said


class Hooks:
    """Feeds what agents say by hooks, one event for each launch of a slice."""

    def __init__(
        self,
        spool_folder: Path,
        clock: Clock,
        feed: Callable[[Event], None],
        is_current: Callable[[str], bool],
        recorded: Callable[[Event], Awaitable[None]],
        read_said: ReadSaid,
        is_theirs: IsTheirs,
    ) -> None:
        self._spool = Spool(spool_folder, read_said, is_theirs)
        self._clock = clock
        self._feed = feed
        self._is_current = is_current
        self._recorded = recorded
        self._spooling = asyncio.Lock()  # one thread at a time reads and clears the folder
        self._unsettled: dict[asyncio.Task[None], int] = {}  # slices that are not durable yet, and their files
        self._dropped = 0
        self._trouble: str | None = None
        self._arrived = asyncio.Event()
        self._arrived.set()  # files from before us wait
        self._watch = FolderWatch(spool_folder / "new", self._changed)

    def counts(self) -> dict[str, int]:
        """Return what became of the hook files so far, and how many wait."""
        return {**asdict(self._spool.counts), "dropped": self._dropped}

    async def run(self) -> None:
        while True:
            if not self._spool.counts.backlog:
                await self._wait_for_more()
            while sum(self._unsettled.values()) >= HELD:
                await asyncio.wait(self._unsettled, return_when=asyncio.FIRST_COMPLETED)
            try:
                await self._take_slice()
            except OSError as error:
                await self._try_later(error)
            else:
                self._trouble = None
                await asyncio.sleep(PAUSE_S)

    def close(self) -> None:
        """Stop watching the hook spool; files whose events are not durable stay."""
        for task in self._unsettled:
            task.cancel()
        self._watch.close()

    def _changed(self, names: list[str]) -> None:
        if not names or any(not name.startswith(".") for name in names):  # a dot begins an unfinished file
            self._arrived.set()

    async def _wait_for_more(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._arrived.wait()
        except TimeoutError:
            pass
        self._arrived.clear()  # before the folder is listed: a later file sets it again

    async def _take_slice(self) -> None:
        flooded = self._spool.counts.flooded
        async with self._spooling:
            taken = await self._take()
        if (unread := self._spool.counts.flooded - flooded) > 0:
            log.warning("hooks removed unread", count=unread, why="too many waited")
            self._feed(Noted("hooks.flooded", (("removed", unread),)))
        if taken.names:
            task = asyncio.create_task(self._settle(self._group(taken.hooks), taken.names))
            self._unsettled[task] = len(taken.names)
            task.add_done_callback(self._unsettled.pop)

    async def _take(self) -> TakenHooks:
        """Take hooks from the spool, however long it hangs: what was taken late must not be lost."""
        work = partial(self._spool.take, SLICE, self._clock.now())
        _, taken = begin(HOOKS.hands, work, SPOOL)
        await asyncio.wait([taken], timeout=HOOKS.within_s)
        if not taken.done():
            log.warning("hook spool hangs", waited_s=HOOKS.within_s)
        return await taken

    async def _settle(self, events: list[Hooked], names: tuple[str, ...]) -> None:
        """Feed hooks, and remove their files once they are durable, however long that takes."""
        await asyncio.gather(*(self._recorded(event) for event in events))
        async with self._spooling:
            try:
                await in_thread(HOOKS, self._spool.done, names, about=SPOOL)
            except OSError:
                self._arrived.set()  # the next look removes them, or says why it cannot

    def _group(self, hooks: Iterable[Hook]) -> list[Hooked]:
        """Return an event for each live launch, with its hooks in order."""
        by_launch: dict[str, list[Hook]] = {}
        for hook in hooks:
            by_launch.setdefault(hook.launch_id, []).append(hook)
        current = {launch_id: theirs for launch_id, theirs in by_launch.items() if self._is_current(launch_id)}
        self._dropped += sum(map(len, by_launch.values())) - sum(map(len, current.values()))
        return [Hooked(launch_id, tuple(theirs)) for launch_id, theirs in current.items()]

    async def _try_later(self, error: OSError) -> None:
        """Say once that the hook spool cannot be read, and look again soon."""
        if self._trouble is None:
            log.warning("hook spool not read", why=str(error), next_try_s=RETRY_S)
        self._trouble = str(error)
        self._arrived.set()
        await asyncio.sleep(RETRY_S)
