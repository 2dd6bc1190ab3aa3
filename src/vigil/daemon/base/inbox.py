"""The inbox: events that wait for the machine, in order. It is made first: all who sense and act feed it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from vigil.core.events import Declared, Event, Noted
from vigil.core.model.session import Session
from vigil.daemon.base.log import log
from vigil.errors import VigilError
from vigil.threads import tell

BATCH = 200
Queued = tuple[Event, asyncio.Future[None] | None]  # an event, and the future of a caller who waits until it is durable


class Inbox:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Queued] = deque()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._queue)

    def feed(self, event: Event) -> None:
        self._queue.append((event, None))
        self._arrived.set()

    def put(self, event: Event) -> asyncio.Future[None]:
        """Put an event into the inbox; return a future, done once its changes are durable."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.append((event, future))
        self._arrived.set()
        return future

    async def recorded(self, event: Event) -> None:
        """Put an event into the inbox; wait, however long, until its changes are durable."""
        await self.put(event)

    def note(self, kind: str, data: dict[str, Any], session: Session | None = None) -> None:
        """Put a line for the event log into the inbox, with or without a session."""
        log.warning(kind, **data)
        whose = (None, None) if session is None else (session.id, session.name)
        self.feed(Noted(kind, tuple(data.items()), *whose))

    def feed_from_thread(self, event: Event) -> None:
        """Put an event into the inbox from any thread; a closed loop drops it."""
        tell(self._loop, self.feed, event)

    def note_from_thread(self, kind: str, data: dict[str, Any]) -> None:
        tell(self._loop, self.note, kind, data)

    def record_from_thread(self, events: Sequence[Event], within_s: float) -> None:
        """Put events into the inbox from a thread; wait, bounded, until they are durable."""
        for event in events[:-1]:
            self.feed_from_thread(event)
        recording = self.recorded(events[-1])
        try:
            asyncio.run_coroutine_threadsafe(recording, self._loop).result(within_s)
        except (TimeoutError, CancelledError, VigilError):
            pass
        except RuntimeError:
            recording.close()  # the loop is closed

    async def arrival(self) -> None:
        await self._arrived.wait()
        self._arrived.clear()

    def take(self) -> list[Queued]:
        """Take what came together out of the inbox; a declaration, which may fail, goes alone."""
        batch = [self._queue.popleft()]
        while self._queue and len(batch) < BATCH and not isinstance(batch[0][0], Declared):
            if isinstance(self._queue[0][0], Declared):
                break
            batch.append(self._queue.popleft())
        return batch
