"""Hands: a thread that does one thing after the other for the loop, which waits for it as long as it likes and no longer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue


class Hands:
    """One thread; left alone with something that hangs, it keeps nobody from ending."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def begin(self, job: Callable[[], None]) -> None:
        """Have a job done that sees to its own faults, and tells by itself what came of it."""
        self._jobs.put(job)

    def do(self, job: Callable[[], None]) -> asyncio.Future[None]:
        """Return what is done when the job is."""
        done = asyncio.get_running_loop().create_future()
        self.begin(partial(_do, job, done))
        return done

    def end(self, wait: bool = False) -> None:
        """End after what was begun, and wait for that or not."""
        self._jobs.put(None)
        if wait:
            self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _do(job: Callable[[], None], done: asyncio.Future[None]) -> None:
    error: Exception | None = None
    try:
        job()
    except Exception as raised:
        error = raised
    tell(done.get_loop(), _settle, done, error)


def tell(loop: asyncio.AbstractEventLoop, hear: Callable[..., object], *what: object) -> None:
    """Tell the loop something; one that is closed has nobody left who waits for it."""
    try:
        loop.call_soon_threadsafe(hear, *what)
    except RuntimeError:
        pass


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if not done.done():
        done.set_result(None) if error is None else done.set_exception(error)
