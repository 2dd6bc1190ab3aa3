"""The supervisor: one queue of events, one machine, one order; the commit makes each answer durable first (DESIGN 3)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from vigil.core.effects import Effect
from vigil.core.events import Event, Gap
from vigil.core.model.conversation import Wake
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.daemon.base.inbox import Inbox, Queued
from vigil.daemon.base.recorder import RecordedMachine
from vigil.daemon.base.shown import Shown
from vigil.daemon.commit import Batch, Commit
from vigil.errors import VigilError

DURABLE_S = 10.0  # a caller who waits for a store that refuses then hears so


class Supervisor:
    """Supervises one host: runs the machine on its events, and answers those who serve."""

    def __init__(
        self,
        inbox: Inbox,
        asked: RecordedMachine,
        commit: Commit,
        shown: Shown,
        missed_s: Callable[[], float] = lambda: 0.0,
        clean: Callable[[Event], Event] = lambda event: event,
    ) -> None:
        self.machine = asked.machine
        self.shown = shown.sessions  # readers see only what is durable
        self.answers: dict[str, Wake] = shown.answers
        self._inbox = inbox
        self._asked = asked
        self._commit = commit
        self._shown = shown
        self._missed_s = missed_s
        self._clean = clean  # without secrets

    @property
    def incidents(self) -> Mapping[str, Incident]:
        """Open incidents that the supervisor shows, as far as they are durable."""
        return self._shown.incidents

    @property
    def store_trouble(self) -> str | None:
        """Why the supervisor can have nothing written at the moment; None if it can."""
        return self._shown.store_trouble

    def feed(self, event: Event) -> None:
        self._inbox.feed(event)

    async def done(self, event: Event) -> None:
        """Have the supervisor handle an event; return once durable, VigilError if it fails or hangs."""
        future = self._inbox.put(event)
        while not future.done():
            await asyncio.wait((future,), timeout=DURABLE_S)
            if not future.done() and self.store_trouble is not None:
                why = f"the store cannot be written ({self.store_trouble})"
                raise VigilError(f"{why}: what was asked for is done as soon as it can be; free some space")
        await future

    async def until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Let a caller of the supervisor wait until something holds; say whether it does."""
        return await self._shown.until(holds, within_s)

    def now(self) -> float:
        return self._asked.now()

    async def run(self) -> None:
        """Supervise for ever: ask the machine about queued events; a slow store holds up none."""
        while True:
            await self._inbox.arrival()
            while self._inbox:
                self._handle(self._inbox.take())
                if self._inbox:
                    await asyncio.sleep(0)

    async def drained(self, within_s: float) -> None:
        """Wait a bounded time until the supervisor's queue is handled and written."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._inbox or not self._commit.is_idle:
                    await self._commit.idle()

    def _handle(self, queued: list[Queued]) -> None:
        """Ask the machine about queued events, and have the commit write its answer."""
        effects: list[Effect] = []
        changed: dict[str, Session | None] = {}
        events: list[Event] = [event for event, _ in queued]
        if (missed_s := self._missed_s()) > 0:
            events.insert(0, Gap(missed_s))
        for event in events:
            answer, others = self._asked.ask(self._clean(event))
            effects += answer
            changed |= others
        self._commit.put(Batch(queued, effects, changed, self._asked.incidents()))
