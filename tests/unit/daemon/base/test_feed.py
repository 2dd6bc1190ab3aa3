"""Subscribers are told of what is durable, in order; who waits in vain or goes away disturbs nobody else."""

from __future__ import annotations

import asyncio
from typing import cast

from vigil.core.effects import LogEntry
from vigil.daemon.base.feed import Feed
from vigil.store.store import Store, StoredEvent


def make_feed() -> Feed:
    return Feed(cast(Store, None))


def stored(seq: int) -> StoredEvent:
    return StoredEvent(seq, LogEntry(float(seq), "a"))


async def test_everybody_who_waits_is_told_of_all_that_came_since() -> None:
    feed = make_feed()
    feed.publish([stored(1)])
    waiting = [asyncio.create_task(feed.after(seq, 10)) for seq in (0, 1, 1)]
    await asyncio.sleep(0)

    feed.publish([stored(2), stored(3)])

    assert [[event.seq for event in await one] for one in waiting] == [[1], [2, 3], [2, 3]]
    assert [event.seq for event in await feed.after(0, 10)] == [1, 2, 3]


async def test_who_waits_in_vain_is_told_nothing_and_who_leaves_takes_nobody_along() -> None:
    feed = make_feed()
    patient, leaves = (asyncio.create_task(feed.after(0, 10)) for _ in range(2))
    assert await feed.after(0, 0.001) == []

    leaves.cancel()
    await asyncio.gather(leaves, return_exceptions=True)
    feed.publish([stored(1)])

    assert [event.seq for event in await patient] == [1]
