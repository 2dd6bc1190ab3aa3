"""The census: all living processes of our launches, read once for all who ask at the same time.

A hundred endings ask at once, and a reading of /proc costs tens of ms. A census begins after the question it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vigil.observe.survivors import SeenProcess, read_processes
from vigil.threads import CENSUS, in_thread


class Census:
    def __init__(self, boot: str, spool: str, keeper: Callable[[], int | None]) -> None:
        self._boot = boot
        self._spool = spool
        self._keeper = keeper  # in the moment of a birth it bears that launch's mark itself
        self._waiting: asyncio.Future[list[SeenProcess]] | None = None
        self._running: asyncio.Task[None] | None = None

    async def take(self) -> list[SeenProcess]:
        """Take a census: every living process of our launches, read after this call."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        waiting = self._waiting
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await asyncio.shield(waiting)

    async def _run(self) -> None:
        while self._waiting is not None:
            answered, self._waiting = self._waiting, None
            try:
                seen = await in_thread(CENSUS, read_processes, self._boot, self._spool)
                answered.set_result([one for one in seen if one.process.pid != self._keeper()])
            except BaseException as error:
                answered.set_exception(error)
                raise
