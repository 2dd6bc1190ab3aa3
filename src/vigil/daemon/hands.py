"""Hands: a thread that does one thing after the other for the loop, which waits for it as long as it likes and no longer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue


class Hands:
    """One thread; left alone with something that hangs, it keeps nobody from ending."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], None], asyncio.Future[None]] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def do(self, job: Callable[[], None]) -> asyncio.Future[None]:
        """Return what is done when the job is."""
        done = asyncio.get_running_loop().create_future()
        self._jobs.put((job, done))
        return done

    def end(self) -> None:
        """End after what is at work."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            job, done = given
            error: Exception | None = None
            try:
                job()
            except Exception as raised:
                error = raised
            try:
                done.get_loop().call_soon_threadsafe(_settle, done, error)
            except RuntimeError:
                return  # the loop has ended


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if not done.done():
        done.set_result(None) if error is None else done.set_exception(error)
