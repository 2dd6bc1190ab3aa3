"""Retention: the daemon deletes records that are over and too many or too old, a few at a time, beside its commits."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vigil.core.model.retention import Retention
from vigil.daemon.base.log import log
from vigil.hands import Hands, Hangs
from vigil.store.store import Store
from vigil.threads import ask

T = TypeVar("T")
PASS_S = 10.0  # if anything was written since the last pass
LONGEST_PASS_S = 3600.0  # else: what only grew older
STEP_S = 60.0
RESTS = 4  # so many times as long as a step took: four fifths of the time are the commits' alone
LEAST_REST_S = 0.02


@dataclass(eq=False, repr=False)
class Pruner:
    """Prunes by the retention of the configuration, for as long as the daemon runs."""

    _store: Store
    _retention: Callable[[], Retention]
    _now: Callable[[], float]
    _last_seq: Callable[[], int]
    _forget_bundles: Callable[[Sequence[str]], None]
    _hands: Hands = field(default_factory=lambda: Hands("retention"), init=False)

    async def run(self) -> None:
        """Prune for ever: soon after something was written, and now and then."""
        seen, next_at, kept = -1, 0.0, None
        while True:
            await asyncio.sleep(PASS_S)
            if self._last_seq() != seen or self._retention() != kept or time.monotonic() >= next_at:
                seen, next_at, kept = self._last_seq(), time.monotonic() + LONGEST_PASS_S, self._retention()
                try:
                    await self._pass()
                except (sqlite3.Error, OSError, Hangs) as error:
                    log.warning("the store could not be pruned", why=str(error), next_try_s=PASS_S)
                    seen = -1

    def close(self) -> None:
        self._hands.close()

    async def _pass(self) -> None:
        """Prune until nothing is left to delete, then give free pages back."""
        while await self._prune():
            pass
        while await self._step(self._store.give_back):
            pass

    async def _prune(self) -> bool:
        old = await self._step(lambda: self._store.prune(self._retention(), self._now()))
        self._forget_bundles([str(key) for key in old.keys.get("deaths", ())])  # in the loop: the coroner has its own thread
        return old.are_many

    async def _step(self, step: Callable[[], T]) -> T:
        began = time.monotonic()
        done = await ask(self._hands, step, STEP_S)
        await asyncio.sleep(max(LEAST_REST_S, RESTS * (time.monotonic() - began)))
        return done
