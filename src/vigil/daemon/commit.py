"""The commit: writes what the machine decided, then shows it, tells subscribers, and only then acts (DESIGN 3).

One write takes all that waits: 500 deaths cost a few commits, and a disk that hangs delays deeds, not sight (P6)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from vigil.core.effects import Effect, Persist, Tell
from vigil.core.events import Declared, Withdrawn
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.daemon.base.feed import Feed
from vigil.daemon.base.inbox import Queued
from vigil.daemon.base.log import log
from vigil.daemon.base.recorder import RecordedMachine
from vigil.daemon.base.shown import Shown
from vigil.errors import VigilError
from vigil.hands import Hands
from vigil.store.store import Store, StoredEvent
from vigil.threads import begin

RETRY_S = 0.5
TELL_S = 0.25  # an incident is told without its record if the store takes longer: with its route, 1 s (P6)
CLOSE_S = 5.0
SLOW_S = 5.0  # a slower store is a person's business


@dataclass
class Batch:
    """Events to commit together, the machine's answer, and what changed."""

    queued: list[Queued]
    effects: list[Effect]
    changed: dict[str, Session | None]
    incidents: dict[str, Incident]
    waiting: list[asyncio.TimerHandle] = field(default_factory=list)

    @property
    def declares(self) -> bool:
        """Whether the batch to commit is a declaration, which a failed write takes back."""
        return isinstance(self.queued[0][0], Declared)

    def cancel(self) -> None:
        """Cancel the tellings that were planned in case the commit takes long."""
        for handle in self.waiting:
            handle.cancel()

    def answer(self, error: VigilError | None = None) -> None:
        """Tell those who wait for the commit of their event what became of it."""
        for _, future in self.queued:
            if future is not None and not future.done():
                future.set_result(None) if error is None else future.set_exception(error)


class Commit:
    def __init__(
        self,
        machine: RecordedMachine,
        store: Store,
        feed: Feed,
        shown: Shown,
        begin: Callable[[Effect], None],
        on_slow: Callable[[bool], None],
        on_refused: Callable[[str | None], None],
    ) -> None:
        self._machine = machine
        self._store = store
        self._feed = feed
        self._shown = shown
        self._begin = begin
        self._on_slow = on_slow
        self._on_refused = on_refused
        self._unwritten: deque[Batch] = deque()
        self._committing: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()  # set and made anew whenever all is written
        self._writer = Hands("store", ready=True)
        self._slow = False

    @property
    def is_idle(self) -> bool:
        return self._committing is None

    async def idle(self) -> None:
        """Wait until all is committed the next time."""
        await self._idle.wait()

    def put(self, batch: Batch) -> None:
        """Commit a batch, together with all that waits."""
        loop = asyncio.get_running_loop()
        for effect in batch.effects:
            if isinstance(effect, Tell):
                batch.waiting.append(loop.call_later(TELL_S, self._begin, effect))  # telling twice does no harm
        self._unwritten.append(batch)
        if self._committing is None:
            self._commit_next()

    async def close(self) -> None:
        """Wait a bounded time for the commit under way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while not self.is_idle:
                    await self.idle()
        self._writer.close()

    def _commit_next(self) -> None:
        """Begin to commit all that waits in one transaction; a declaration goes alone."""
        if not self._unwritten:
            self._committing = None
            self._idle.set()
            self._idle = asyncio.Event()
            return
        batches = [self._unwritten.popleft()]
        while self._unwritten and not batches[0].declares and not self._unwritten[0].declares:
            batches.append(self._unwritten.popleft())
        self._committing = asyncio.create_task(self._commit(batches))
        self._committing.add_done_callback(_raise_error)

    async def _commit(self, batches: list[Batch]) -> None:
        """Commit batches: write them, and once durable show them, tell them, and only then act."""
        stored = await self._write(batches)
        if stored is None:
            self._commit_next()
            return
        self._feed.publish(stored)
        for batch in batches:
            self._shown.change(batch.changed, batch.incidents)
        self._commit_next()
        await asyncio.sleep(0)  # the subscribers that `publish` woke run first
        for batch in batches:
            batch.cancel()
            for effect in batch.effects:
                if not isinstance(effect, Persist):
                    self._begin(effect)
        for batch in batches:
            batch.answer()
        self._shown.tell()

    async def _write(self, batches: list[Batch]) -> list[StoredEvent] | None:
        """Write a commit until the store takes it; None for a declaration taken back."""
        changes = [effect for batch in batches for effect in batch.effects if isinstance(effect, Persist)]
        stored: list[StoredEvent] = []
        while changes:
            slow = asyncio.get_running_loop().call_later(SLOW_S, self._note_slow)
            _, written = begin(self._writer, partial(self._store.write, changes, self._machine.whole))
            await asyncio.wait([written])
            slow.cancel()
            if (error := written.exception()) is None:
                if self._shown.store_trouble is not None:
                    self._on_refused(None)
                self._shown.store_is(None)
                stored = written.result()
                break
            if self._is_taken_back(batches[0], error):
                return None
            await asyncio.sleep(RETRY_S)
        if self._slow:
            self._slow = False
            self._on_slow(False)
        return stored

    def _is_taken_back(self, batch: Batch, error: BaseException) -> bool:
        """After a failed commit, take a declaration back and say so; other changes wait."""
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        first = batch.queued[0][0]
        if isinstance(first, Declared):
            self._take_back(batch, first.session_id)
            batch.answer(VigilError(f"the store cannot be written ({why}): free some space, then try again"))
            return True
        if self._shown.store_trouble is None:
            log.error("the store cannot be written", why=why, next_try_s=RETRY_S)
            self._on_refused(why)
        self._shown.store_is(why)
        return False

    def _take_back(self, batch: Batch, session_id: str) -> None:
        """Have the machine forget a declaration whose commit failed, before the next write."""
        batch.cancel()
        withdrawn = Withdrawn(session_id)
        effects, changed = self._machine.ask(withdrawn)
        self._unwritten.appendleft(Batch([(withdrawn, None)], effects, batch.changed | changed, self._machine.incidents()))
        for later in self._unwritten:
            later.changed.pop(session_id, None)

    def _note_slow(self) -> None:
        self._slow = True
        self._on_slow(True)


def _raise_error(task: asyncio.Task[None]) -> None:
    """Have the loop tell of an error that ended a commit."""
    if not task.cancelled():
        task.result()
