"""The feed of events: durable first, then told to every subscriber in order, none lost.

Subscribers read from a ring in memory; one that fell behind the ring reads from the store."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import takewhile

from vigil.store.store import Store, StoredEvent
from vigil.threads import READS, in_thread

RING = 1024
PAGE = 500


class Feed:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._ring: deque[StoredEvent] = deque(maxlen=RING)
        self._waiting: list[asyncio.Future[list[StoredEvent]]] = []  # each for the next news
        self.last_seq = 0

    def load(self) -> None:
        """Begin the feed at the number of the store's last event."""
        last = self._store.read_events(limit=1, newest=True)
        self.last_seq = last[-1].seq if last else 0

    def publish(self, stored: list[StoredEvent]) -> None:
        if stored:
            self._ring.extend(stored)
            self.last_seq = stored[-1].seq
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                _tell(one, stored)

    async def after(self, seq: int, within_s: float) -> list[StoredEvent]:
        """Return the feed's events after a sequence number, in order; none if time runs out."""
        if seq < self.last_seq:
            return await self._after(seq)
        loop = asyncio.get_running_loop()
        news: asyncio.Future[list[StoredEvent]] = loop.create_future()
        self._waiting.append(news)
        late = loop.call_later(within_s, _tell, news, [])
        try:
            return await news
        finally:
            late.cancel()
            if news in self._waiting:
                self._waiting.remove(news)

    async def _after(self, seq: int) -> list[StoredEvent]:
        if self._ring and self._ring[0].seq <= seq + 1:
            return list(takewhile(lambda event: event.seq > seq, reversed(self._ring)))[::-1]
        return await in_thread(READS, self._store.read_events, seq, None, None, PAGE)


def _tell(one: asyncio.Future[list[StoredEvent]], news: list[StoredEvent]) -> None:
    if not one.done():
        one.set_result(news)
