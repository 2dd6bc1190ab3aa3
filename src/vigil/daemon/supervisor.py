"""The supervisor: one queue of events, one machine, one order of things (DESIGN 3).

Take what happened, ask the machine, make its answer durable, tell subscribers, and only then act. Events that came together
share one transaction, so five hundred deaths cost a few commits and not five hundred.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from vigil.core.effects import (
    CloseLaunch,
    Conclude,
    Effect,
    EndLaunch,
    Look,
    Persist,
    Purge,
    RepairSocket,
    SetTimer,
    Spawn,
    Tell,
)
from vigil.core.events import Declared, Ended, Event, Gap, LaunchFailed, Noted, TimerFired, Withdrawn
from vigil.core.machine import Machine
from vigil.core.model import Incident, Session
from vigil.daemon.carry import Carrier
from vigil.daemon.clock import Clock
from vigil.daemon.feed import Feed
from vigil.daemon.log import log
from vigil.errors import VigilError
from vigil.store.store import Store

BATCH = 200
RETRY_S = 0.5
TELL_S = 0.5  # an incident is told without its record when the store takes longer (P6)
SLOW_S = 5.0  # a store that takes longer is a human's business


class Supervisor:
    """Runs the machine on the events of one host."""

    def __init__(self, machine: Machine, store: Store, feed: Feed, clock: Clock) -> None:
        self.machine = machine
        self.shown = dict(machine.sessions)  # what readers see: only what is durable
        self._store = store
        self._feed = feed
        self._clock = clock
        self._queue: deque[tuple[Event, asyncio.Future[None] | None]] = deque()
        self._arrived = asyncio.Event()
        self._changed = asyncio.Event()
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writer = ThreadPoolExecutor(1, "store")
        self._slow = False
        self.incidents = dict(machine.incidents)  # open ones, as far as they are durable
        self.store_trouble: str | None = None
        self.carrier: Carrier  # set once the parts that feed us exist
        self.look: Callable[[Session], Awaitable[None]]
        self.tell: Callable[[Incident], None]
        self.on_slow_store: Callable[[bool], None] = lambda _slow: None
        self.missed_s: Callable[[], float] = lambda: 0.0

    def feed(self, event: Event) -> None:
        """Queue an event; returns at once."""
        self._queue.append((event, None))
        self._arrived.set()

    def note(self, kind: str, data: dict[str, Any]) -> None:
        """Queue a line for the event log."""
        log.warning(kind, **data)
        self.feed(Noted(kind, tuple(data.items())))

    async def done(self, event: Event) -> None:
        """Queue an event and return when what it changed is durable; VigilError if it never became so."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((event, future))
        self._arrived.set()
        await future

    async def until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Wait until something is true of the machine; say whether it is."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            return holds()
        return True

    async def run(self) -> None:
        """Handle events for ever."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._queue:
                await self._handle_batch(self._take_batch())

    async def close(self) -> None:
        """Stop acting; what is durable stays so."""
        for handle in self._timers.values():
            handle.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writer.shutdown()

    def _take_batch(self) -> list[tuple[Event, asyncio.Future[None] | None]]:
        """Take what came together; a declaration goes alone, because it is taken back if it cannot become durable."""
        batch = [self._queue.popleft()]
        while self._queue and len(batch) < BATCH and not isinstance(batch[0][0], Declared):
            if isinstance(self._queue[0][0], Declared):
                break
            batch.append(self._queue.popleft())
        return batch

    async def _handle_batch(self, batch: list[tuple[Event, asyncio.Future[None] | None]]) -> None:
        effects: list[Effect] = []
        if (missed_s := self.missed_s()) > 0:
            effects += self.machine.handle(Gap(missed_s), self._clock.now())
        for event, _ in batch:
            effects += self.machine.handle(event, self._clock.now())
        waiting = self._tell_late([effect.incident for effect in effects if isinstance(effect, Tell)])
        try:
            await self._persist([effect for effect in effects if isinstance(effect, Persist)], batch[0][0])
        except VigilError as error:
            for _, future in batch:
                if future is not None and not future.done():
                    future.set_exception(error)
            return
        finally:
            for handle in waiting:
                handle.cancel()
        self.incidents = dict(self.machine.incidents)
        self.shown = dict(self.machine.sessions)
        await asyncio.sleep(0)  # subscribers hear of it before we act on it
        for effect in effects:
            if not isinstance(effect, Persist):
                self._begin(effect)
        for _, future in batch:
            if future is not None and not future.done():
                future.set_result(None)
        self._changed.set()
        self._changed = asyncio.Event()

    def _tell_late(self, incidents: list[Incident]) -> list[asyncio.TimerHandle]:
        """Have incidents told even if the store does not answer; telling twice does no harm."""
        loop = asyncio.get_running_loop()
        handles = [loop.call_later(TELL_S, self.tell, incident) for incident in incidents]
        return [*handles, loop.call_later(SLOW_S, self._note_slow)]

    def _note_slow(self) -> None:
        self._slow = True
        self.on_slow_store(True)

    async def _persist(self, changes: list[Persist], first: Event) -> None:
        while changes:
            try:
                stored = await asyncio.get_running_loop().run_in_executor(self._writer, self._store.write, changes)
            except Exception as error:  # a full or broken disk: what was seen is kept in memory until it can be written
                why = str(getattr(error, "orig", None) or error).splitlines()[0]
                if isinstance(first, Declared):
                    self.machine.handle(Withdrawn(first.session_id), self._clock.now())
                    raise VigilError(f"the store cannot be written ({why}): free some space, then try again") from error
                if self.store_trouble is None:
                    log.error("the store cannot be written", why=why, next_try_s=RETRY_S)
                self.store_trouble = why
                await asyncio.sleep(RETRY_S)
            else:
                self.store_trouble = None
                self._feed.publish(stored)
                if self._slow:
                    self._slow = False
                    self.on_slow_store(False)
                return

    def _begin(self, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            self._set_timer(effect)
        elif isinstance(effect, Spawn):
            self._start(self.carrier.spawn(effect), LaunchFailed(effect.launch.id, self._clock.now(), "internal error"))
        elif isinstance(effect, EndLaunch):
            self._start(self.carrier.end(effect), Ended(effect.launch.id, ok=False, why="internal error"))
        elif isinstance(effect, CloseLaunch):
            self._start(self.carrier.close(effect), None)
        elif isinstance(effect, Purge):
            self._start(self.carrier.purge(effect), None)
        elif isinstance(effect, Look):
            self._start(self._look(effect.launch.id), None)
        elif isinstance(effect, Conclude):
            self.carrier.watch.conclude(effect.launch)
        elif isinstance(effect, RepairSocket):
            self._start(self._repair(effect), None)
        elif isinstance(effect, Tell):
            self.tell(effect.incident)

    async def _look(self, launch_id: str) -> None:
        session = self.machine.of_launch(launch_id)
        if session is not None:
            await self.look(session)

    async def _repair(self, effect: RepairSocket) -> None:
        await self.carrier.repair(effect)
        await self._look(effect.launch.id)

    def _set_timer(self, effect: SetTimer) -> None:
        key = (effect.session_id, effect.kind)
        if (before := self._timers.pop(key, None)) is not None:
            before.cancel()
        delay_s = max(0.0, effect.at - self._clock.now())
        self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self._fire, key)

    def _fire(self, key: tuple[str, str]) -> None:
        self._timers.pop(key, None)
        self.feed(TimerFired(*key))

    def _start(self, work: Awaitable[None], otherwise: Event | None) -> None:
        """Carry something out; a fault of ours is an outcome too, never silence."""

        async def guarded() -> None:
            try:
                await work
            except Exception:
                log.exception("an effect failed", outcome=str(otherwise))
                if otherwise is not None:
                    self.feed(otherwise)

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
