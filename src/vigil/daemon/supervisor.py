"""The supervisor: one queue of events, one machine, one order of things (DESIGN 3).

Take what happened, ask the machine, make its answer durable, tell subscribers, and only then act. What happens while the store
writes is handled meanwhile and written next, all of it in one transaction: five hundred deaths cost a few commits and not five
hundred, and a disk that hangs delays what is shown and done, not what is seen (P6).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from vigil.core.effects import (
    Amend,
    Answer,
    Conclude,
    Diagnose,
    Effect,
    Examine,
    Judged,
    Look,
    Persist,
    React,
    ReapEnded,
    RepairSocket,
    SetTimer,
    Tell,
)
from vigil.core.events import Declared, Event, Gap, Noted, ReactionEnded, TimerFired, Withdrawn
from vigil.core.machine import Machine
from vigil.core.model.conversation import Wake
from vigil.core.model.incident import Incident, ReactionOutcome
from vigil.core.model.session import Session
from vigil.core.model.timer import TimerKind
from vigil.daemon.act import Carrier, fault_of
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.feed import Feed
from vigil.daemon.base.log import log
from vigil.daemon.base.sweeps import Sweeps
from vigil.daemon.base.threads import Hands, tell
from vigil.errors import VigilError
from vigil.recording import fault
from vigil.store.store import Store, StoredEvent

BATCH = 200
RETRY_S = 0.5
HEAR_S = 0.001  # subscribers come first: the kernel may have woken them on our core, where they run once we sleep
TELL_S = 0.25  # an incident is told without its record when the store takes longer: with what its route takes, 1 s (P6)
CLOSE_S = 5.0
DURABLE_S = 10.0  # whoever waits for a store that refuses is told so
SLOW_S = 5.0  # a store that takes longer is a human's business
Queued = tuple[Event, asyncio.Future[None] | None]
Done = Callable[[list[StoredEvent], Exception | None], None]


@dataclass
class Batch:
    """Events that came together: what the machine answered, and what was another then."""

    queued: list[Queued]
    effects: list[Effect]
    changed: dict[str, Session | None]
    incidents: dict[str, Incident]
    waiting: list[asyncio.TimerHandle] = field(default_factory=list)

    @property
    def declares(self) -> bool:
        """It is a declaration, which is taken back if it cannot become durable."""
        return isinstance(self.queued[0][0], Declared)

    def cancel(self) -> None:
        """Tell nobody late any more."""
        for handle in self.waiting:
            handle.cancel()


class Supervisor:
    """Runs the machine on the events of one host."""

    def __init__(self, machine: Machine, store: Store, feed: Feed, clock: Clock) -> None:
        self.machine = machine
        self.shown = dict(machine.sessions)  # what readers see: only what is durable
        self._store = store
        self._feed = feed
        self._clock = clock
        self._queue: deque[Queued] = deque()
        self._unwritten: deque[Batch] = deque()
        self._writing: list[Batch] | None = None
        self._durable: list[Batch] = []  # told, and not yet acted on
        self._arrived = asyncio.Event()
        self._changed = asyncio.Event()
        self._timers: dict[tuple[str, TimerKind], asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writer = Hands("store")
        self._slow = False
        self._is_running = False
        self._broken: Exception | None = None  # what the machine raised outside of `run`
        self.incidents = dict(machine.incidents)  # open ones, as far as they are durable
        self.answers: dict[str, Wake] = {}  # what was decided for whom, until they ask
        self.sweeps = Sweeps()
        self.store_trouble: str | None = None
        self.carrier: Carrier  # set once the parts that feed us exist
        self.look: Callable[[Session], Awaitable[None]]
        self.tell: Callable[[Incident], None]
        self.examine: Callable[[Examine], Awaitable[None]]
        self.amend: Callable[[Amend], None]
        self.react: Callable[[React], Awaitable[None]]
        self.diagnose: Callable[[Diagnose], Awaitable[None]]
        self.on_slow_store: Callable[[bool], None] = lambda _slow: None
        self.missed_s: Callable[[], float] = lambda: 0.0
        self.on_handled: Callable[[float, Event, list[Effect] | str], None] = lambda _now, _event, _answer: None

    def feed(self, event: Event) -> None:
        """Queue an event; returns at once."""
        self._queue.append((event, None))
        self._arrived.set()

    def at_once(self, event: Event) -> None:
        """Handle an event before the loop does anything else: a death, which many wait for.

        Unless others came first, or the store is busy: those who die together are handled and written together.
        """
        if self._queue or self._writing is not None or not self._is_running:
            self.feed(event)
            return
        try:
            self._handle_batch([(event, None)])
        except Exception as error:
            self._broken = error
            self._arrived.set()

    def note(self, kind: str, data: dict[str, Any], session: Session | None = None) -> None:
        """Queue a line for the event log, of a session or of none."""
        log.warning(kind, **data)
        whose = (None, None) if session is None else (session.id, session.name)
        self.feed(Noted(kind, tuple(data.items()), *whose))

    async def done(self, event: Event) -> None:
        """Queue an event and return when what it changed is durable; VigilError if it never became so, or not in time."""
        future = self._put(event)
        while not future.done():
            await asyncio.wait((future,), timeout=DURABLE_S)
            if not future.done() and self.store_trouble is not None:
                why = f"the store cannot be written ({self.store_trouble})"
                raise VigilError(f"{why}: what was asked for is done as soon as it can be; free some space")
        await future

    async def recorded(self, event: Event) -> None:
        """Queue an event and return when what it changed is durable, however long that takes."""
        await self._put(event)

    def _put(self, event: Event) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((event, future))
        self._arrived.set()
        return future

    async def until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Wait until something is true of the machine; say whether it is."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            return holds()
        return True

    def now(self) -> float:
        """Return the time, as the machine is told it."""
        return self._clock.now()

    async def run(self) -> None:
        """Handle events for ever; what the store takes its time to write does not hold up what happens next."""
        self._is_running = True
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self._broken is not None:
                raise self._broken
            while self._queue:
                self._handle_batch(self._take_batch())
                if self._queue:
                    await asyncio.sleep(0)

    async def drained(self, within_s: float) -> None:
        """Wait until all that was fed is handled and written; not for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._queue or self._unwritten or self._writing is not None:
                    await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Stop acting; what is durable stays so."""
        for handle in self._timers.values():
            handle.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while self._writing is not None:
                    await asyncio.sleep(0.01)
        self._writer.end(wait=self._writing is None)

    def _take_batch(self) -> list[Queued]:
        """Take what came together; a declaration goes alone, because it is taken back if it cannot become durable."""
        batch = [self._queue.popleft()]
        while self._queue and len(batch) < BATCH and not isinstance(batch[0][0], Declared):
            if isinstance(self._queue[0][0], Declared):
                break
            batch.append(self._queue.popleft())
        return batch

    def _handle_batch(self, queued: list[Queued]) -> None:
        """Ask the machine, and have its answer written."""
        effects: list[Effect] = []
        changed: dict[str, Session | None] = {}
        events: list[Event] = [event for event, _ in queued]
        if (missed_s := self.missed_s()) > 0:
            events.insert(0, Gap(missed_s))
        for event in events:
            effects += self._ask(event)
            changed |= self.machine.changed
        batch = Batch(queued, effects, changed, dict(self.machine.incidents))
        loop = asyncio.get_running_loop()
        for incident in (effect.incident for effect in effects if isinstance(effect, Tell)):
            batch.waiting.append(loop.call_later(TELL_S, self.tell, incident))  # telling twice does no harm
        self._unwritten.append(batch)
        if self._writing is None:
            self._write_next()  # the last thing: the store's thread finds nobody before it

    def _ask(self, event: Event) -> list[Effect]:
        """Ask the machine: the one place where that is done, so that a recording holds all it was told."""
        now = self._clock.now()
        try:
            effects = self.machine.handle(event, now)
        except Exception as error:
            self.on_handled(now, event, fault(error))  # what broke us is what a recording is wanted for most
            raise
        self.on_handled(now, event, effects)
        return effects

    def _write_next(self) -> None:
        """Begin to write what was decided since the last time, in one transaction; a declaration goes alone."""
        if not self._unwritten:
            self._writing = None
            return
        batches = [self._unwritten.popleft()]
        while self._unwritten and not batches[0].declares and not self._unwritten[0].declares:
            batches.append(self._unwritten.popleft())
        self._writing = batches
        self._write(batches)

    def _write(self, batches: list[Batch]) -> None:
        changes = [effect for batch in batches for effect in batch.effects if isinstance(effect, Persist)]
        if not changes:
            self._written(batches, [])
            return
        loop = asyncio.get_running_loop()

        def done(stored: list[StoredEvent], error: Exception | None) -> None:
            slow.cancel()
            if error is None:
                self.store_trouble = None
                self._written(batches, stored)
            else:
                self._not_written(batches, error)

        slow = loop.call_later(SLOW_S, self._note_slow)
        self._writer.begin(partial(self._store_changes, changes, loop, done))

    def _store_changes(self, changes: list[Persist], loop: asyncio.AbstractEventLoop, done: Done) -> None:
        """Write, in the store's own thread, and say straight to the loop what came of it: a death waits for every step less."""
        stored: list[StoredEvent] = []
        failed: Exception | None = None
        try:
            stored = self._store.write(changes)
        except Exception as error:
            failed = error
        tell(loop, done, stored, failed)

    def _written(self, batches: list[Batch], stored: list[StoredEvent]) -> None:
        """It is durable: show it and tell it, and only then act."""
        if self._slow:
            self._slow = False
            self.on_slow_store(False)
        self._feed.publish(stored)
        for batch in batches:
            self._show(batch.changed)
        self.incidents = batches[-1].incidents
        if not self._durable:
            asyncio.get_running_loop().call_later(HEAR_S if stored else 0.0, self._act)
        self._durable += batches
        self._write_next()

    def _show(self, changed: dict[str, Session | None]) -> None:
        for session_id, session in changed.items():
            if session is None:
                self.shown.pop(session_id, None)
            else:
                self.shown[session_id] = session

    def _not_written(self, batches: list[Batch], error: BaseException) -> None:
        """A full or broken disk: what was seen is kept in memory until it can be written, a declaration is taken back."""
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        first = batches[0].queued[0][0]
        if isinstance(first, Declared):
            batches[0].cancel()
            withdrawn = Withdrawn(first.session_id)
            effects = self._ask(withdrawn)
            changed = batches[0].changed | self.machine.changed
            self._unwritten.appendleft(Batch([(withdrawn, None)], effects, changed, dict(self.machine.incidents)))
            for later in self._unwritten:
                later.changed.pop(first.session_id, None)
            words = f"the store cannot be written ({why}): free some space, then try again"
            _answer(batches, VigilError(words))
            self._write_next()
            return
        if self.store_trouble is None:
            log.error("the store cannot be written", why=why, next_try_s=RETRY_S)
            self._note_slow()
        self.store_trouble = why
        asyncio.get_running_loop().call_later(RETRY_S, self._write, batches)

    def _act(self) -> None:
        batches, self._durable = self._durable, []
        for batch in batches:
            batch.cancel()
            for effect in batch.effects:
                if not isinstance(effect, Persist):
                    self._begin(effect)
        _answer(batches, None)
        self._changed.set()
        self._changed = asyncio.Event()

    def _note_slow(self) -> None:
        self._slow = True
        self.on_slow_store(True)

    def _begin(self, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            self._set_timer(effect)
        elif isinstance(effect, RepairSocket):
            self._start(self._repair(effect), None)
        elif self.carrier.carries(effect):
            self._start(self.carrier.carry_out(effect), fault_of(effect, self._clock.now()))
        elif isinstance(effect, Diagnose):
            self._start(self.diagnose(effect), None)
        elif isinstance(effect, Look):
            self._start(self._look(effect.launch.id), None)
        elif isinstance(effect, Conclude):
            self.carrier.custody.watch.conclude(effect.launch)
        elif isinstance(effect, Examine):
            self._start(self.examine(effect), None)
        elif isinstance(effect, Amend):
            self.amend(effect)
        elif isinstance(effect, React):
            failed = ReactionEnded(effect.incident.id, effect.number, ReactionOutcome.FAILED, "internal error")
            self._start(self.react(effect), failed)
        elif isinstance(effect, Tell):
            self.tell(effect.incident)
        elif isinstance(effect, Answer):
            self.answers[effect.ticket] = effect.wake
        elif isinstance(effect, Judged):
            self.sweeps.judged(effect)
        elif isinstance(effect, ReapEnded):
            self.sweeps.ended(effect)

    async def _look(self, launch_id: str) -> None:
        session = self.machine.of_launch(launch_id)
        if session is not None:
            await self.look(session)

    async def _repair(self, effect: RepairSocket) -> None:
        await self.carrier.carry_out(effect)
        await self._look(effect.launch.id)

    def _set_timer(self, effect: SetTimer) -> None:
        key = (effect.session_id, effect.kind)
        if (before := self._timers.pop(key, None)) is not None:
            before.cancel()
        delay_s = max(0.0, effect.at - self._clock.now())
        self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self._fire, key)

    def _fire(self, key: tuple[str, TimerKind]) -> None:
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


def _answer(batches: list[Batch], error: VigilError | None) -> None:
    """Tell those who wait for their event what became of it."""
    for batch in batches:
        for _, future in batch.queued:
            if future is None or future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
