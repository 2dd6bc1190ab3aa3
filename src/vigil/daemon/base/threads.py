"""Threads: the loop hands work to a thread and waits no longer than its deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from vigil.hands import Hands, Hangs, Job

T = TypeVar("T")
BEGIN_S = 10.0


def begun_pool(name: str, threads: int) -> ThreadPoolExecutor:
    """Return a pool whose threads have all begun: a host that has no more later cannot refuse one."""
    pool = ThreadPoolExecutor(threads, name)
    gate = threading.Barrier(threads + 1)
    for _ in range(threads):
        pool.submit(gate.wait, BEGIN_S)
    gate.wait(BEGIN_S)
    return pool


def begin(hands: Hands, work: Callable[[], T]) -> tuple[Job, asyncio.Future[T]]:
    """Begin work in a thread; return the job, and a future of its result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    return hands.begin(work, lambda result, error: tell(loop, _settle, done, result, error)), done


async def ask(hands: Hands, work: Callable[[], T], within_s: float) -> T:
    """Return or raise what a call in a thread does; raise Hangs after its deadline."""
    hands.check(within_s)
    job, done = begin(hands, work)
    try:
        await asyncio.wait([done], timeout=within_s)
    finally:
        given_up = not done.done() and hands.give_up(job)
    if given_up:
        done.add_done_callback(_ignore)
        raise Hangs(within_s)
    return await done


def tell(loop: asyncio.AbstractEventLoop, hear: Callable[..., object], *what: object) -> None:
    """Tell the loop something from a thread; a closed loop drops it."""
    try:
        loop.call_soon_threadsafe(hear, *what)
    except RuntimeError:
        pass


def _settle(done: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if not done.done():
        done.set_result(result) if error is None else done.set_exception(error)


def _ignore(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()  # or asyncio complains that it was never retrieved
