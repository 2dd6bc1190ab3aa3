"""Threads: the loop hands work to threads of its purpose and waits no longer than its deadline.

What hangs in one purpose delays no other: a launch waits for no reader, a reader for no agent's file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from vigil.hands import Hands, Hangs, Job

T = TypeVar("T")


@dataclass(eq=False)
class Pool:
    """Threads of one purpose: so many at most, and how long a caller waits for a call."""

    purpose: str
    most: int
    within_s: float
    hands: Hands = field(init=False)

    def __post_init__(self) -> None:
        self.hands = Hands(self.purpose, self.most)


# A command has a deadline of its own, the store gives up after 5 s: ours comes behind those.
READS = Pool("reads", 4, 8.0)  # the store, read for its owner
SHOWN = Pool("shown", 8, 2.0)  # files that an owner asks to see: output, bundles, how transcripts grew
LAUNCHES = Pool("launches", 16, 30.0)  # a launch's environment, adapter, cgroup and order
ENDS = Pool("ends", 8, 60.0)  # what is left of a launch: its cgroup, its last hooks
CENSUS = Pool("census", 2, 60.0)  # every process of the host
FOLDERS = Pool("folders", 8, 30.0)  # folders that are removed with all that agents put there
HOOKS = Pool("hooks", 2, 30.0)  # the spool
SANDBOXES = Pool("sandboxes", 8, 10.0)  # the spools of confined agents
DECLARED = Pool("declared", 8, 30.0)  # what a person declares: programs, environments, manifests, sandboxes
PROMPTS = Pool("prompts", 4, 10.0)  # queued prompts on disk
SWEEPS = Pool("sweeps", 8, 30.0)  # what a sweep of the reaper reads
EVIDENCE = Pool("evidence", 8, 2.0)  # when an agent's files grew
REACTIONS = Pool("reactions", 16, 75.0)  # commands of reactions, 60 s each
TRIALS = Pool("trials", 4, 75.0)  # routes that a person tries
UPKEEP = Pool("upkeep", 2, 15.0)  # what a daemon does at its start and end
POOLS = (
    READS,
    SHOWN,
    LAUNCHES,
    ENDS,
    CENSUS,
    FOLDERS,
    HOOKS,
    SANDBOXES,
    DECLARED,
    PROMPTS,
    SWEEPS,
    EVIDENCE,
    REACTIONS,
    TRIALS,
    UPKEEP,
)


def begin_ready() -> None:
    """Begin a thread of every pool, which no host can refuse later; RuntimeError if it has none now."""
    for pool in POOLS:
        pool.hands.begin_thread()


async def in_thread(pool: Pool, work: Callable[..., T], *args: Any, about: str = "") -> T:
    """Return or raise what a call in a pool's thread does; raise Hangs after the pool's deadline.

    While a call `about` the same hangs, no other is begun."""
    return await ask(pool.hands, partial(work, *args), pool.within_s, about)


def begin(hands: Hands, work: Callable[[], T], about: str = "") -> tuple[Job, asyncio.Future[T]]:
    """Begin work in a thread; return the job, and a future of its result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    return hands.begin(work, lambda result, error: tell(loop, _settle, done, result, error), about), done


async def ask(hands: Hands, work: Callable[[], T], within_s: float, about: str = "") -> T:
    """Return or raise what a call in a thread does; raise Hangs after its deadline."""
    hands.check(within_s, about)
    job, done = begin(hands, work, about)
    try:
        await asyncio.wait([done], timeout=within_s)
    finally:
        given_up = not done.done() and hands.give_up(job)
        if given_up:
            done.add_done_callback(_ignore)
    if given_up:
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
