"""Hooks are taken in at a bounded pace, and a file goes only after what it said is durable."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from vigil.core.events import Event, Hooked, Noted
from vigil.daemon.base.clock import Clock
from vigil.daemon.sense.hooks import HELD, PAUSE_S, RETRY_S, SLICE, Hooks

SOON_S = 20.0


class Daemon:
    """What hooks are handed to: it keeps the events, and makes them durable once it may."""

    def __init__(self, *current: str) -> None:
        self.current = set(current)
        self.fed: list[Event] = []
        self.events: list[Hooked] = []
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def recorded(self, event: Event) -> None:
        assert isinstance(event, Hooked)
        self.events.append(event)
        await self.may_write.wait()

    @property
    def names(self) -> list[str]:
        return [hook.name for event in self.events for hook in event.hooks]


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    for name in ("new", "tmp"):
        (tmp_path / "spool" / name).mkdir(parents=True)
    return tmp_path / "spool"


def put(spool: Path, name: str, launch: str = "s1-1") -> None:
    event = {"session": "a", "launch": launch, "event": {"hook_event_name": name}}
    (spool / "tmp" / name).write_text(json.dumps(event))
    os.rename(spool / "tmp" / name, spool / "new" / name)


def waiting(spool: Path) -> list[str]:
    return sorted(os.listdir(spool / "new"))


@asynccontextmanager
async def running(spool: Path, daemon: Daemon) -> AsyncIterator[Hooks]:
    answers = (daemon.current.__contains__, daemon.recorded, lambda *_: (), lambda *_: True)
    hooks = Hooks(spool, Clock(), daemon.fed.append, *answers)
    task = asyncio.create_task(hooks.run())
    try:
        yield hooks
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        hooks.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not holds():
            await asyncio.sleep(0.01)


async def test_what_waited_before_the_start_is_one_event_for_each_launch(spool: Path) -> None:
    for name, launch in (("e1", "s1-1"), ("e2", "s2-1"), ("e3", "s1-1")):
        put(spool, name, launch)
    daemon = Daemon("s1-1", "s2-1")

    async with running(spool, daemon) as hooks:
        await until(lambda: waiting(spool) == [])
        counts = hooks.counts()

    said = {event.launch_id: [hook.name for hook in event.hooks] for event in daemon.events}
    assert said == {"s1-1": ["e1", "e3"], "s2-1": ["e2"]}
    assert len(daemon.events) == 2
    assert counts == {"taken": 3, "bad": 0, "flooded": 0, "dropped": 0, "backlog": 0}


async def test_what_comes_later_is_taken_as_it_comes(spool: Path) -> None:
    daemon = Daemon("s1-1")

    async with running(spool, daemon):
        for name in ("e1", "e2", "e3"):
            put(spool, name)
            await until(lambda: waiting(spool) == [])

    assert daemon.names == ["e1", "e2", "e3"]


async def test_a_file_stays_until_what_it_said_is_durable(spool: Path) -> None:
    put(spool, "e1")
    daemon = Daemon("s1-1")
    daemon.may_write.clear()

    async with running(spool, daemon):
        await until(lambda: daemon.names == ["e1"])
        put(spool, "e2")
        assert waiting(spool) == ["e1", "e2"]
        daemon.may_write.set()
        await until(lambda: waiting(spool) == [])

    assert daemon.names == ["e1", "e2"]


async def test_what_was_not_durable_when_the_daemon_ended_is_taken_by_the_next(spool: Path) -> None:
    put(spool, "e1")
    first, second = Daemon("s1-1"), Daemon("s1-1")
    first.may_write.clear()

    async with running(spool, first):
        await until(lambda: first.names == ["e1"])
    async with running(spool, second):
        await until(lambda: waiting(spool) == [])

    assert second.names == ["e1"]


async def test_hooks_of_a_launch_that_is_over_are_dropped_and_counted(spool: Path) -> None:
    for name, launch in (("e1", "s1-1"), ("e2", "s1-2"), ("e3", "s1-1")):
        put(spool, name, launch)
    daemon = Daemon("s1-2")

    async with running(spool, daemon) as hooks:
        await until(lambda: waiting(spool) == [])
        counts = hooks.counts()

    assert daemon.names == ["e2"]
    assert counts == {"taken": 3, "bad": 0, "flooded": 0, "dropped": 2, "backlog": 0}


async def test_what_is_no_hook_is_counted_and_no_event(spool: Path) -> None:
    (spool / "tmp" / "x").write_text("no hook")
    daemon = Daemon("s1-1")

    async with running(spool, daemon) as hooks:
        os.rename(spool / "tmp" / "x", spool / "new" / "x")
        await until(lambda: hooks.counts()["bad"] == 1)

    assert daemon.events == []


async def test_many_hooks_come_in_slices_in_order_and_what_came_meanwhile_is_not_forgotten(spool: Path) -> None:
    names = [f"e{number:04}" for number in range(SLICE * 2 + 50)]
    for name in names:
        put(spool, name)
    daemon = Daemon("s1-1")

    async with running(spool, daemon) as hooks:
        await until(lambda: len(daemon.events) == 1)
        assert hooks.counts()["backlog"] == SLICE + 50
        put(spool, "later")
        await until(lambda: waiting(spool) == [])

    assert daemon.names == [*names, "later"]
    assert [len(event.hooks) for event in daemon.events] == [SLICE, SLICE, 50, 1]


async def test_what_comes_while_the_store_does_not_write_is_taken_in_and_its_files_stay(spool: Path) -> None:
    daemon = Daemon("s1-1")
    daemon.may_write.clear()

    async with running(spool, daemon):
        for names in (["e1"], ["e1", "e2"], ["e1", "e2", "e3"]):
            put(spool, names[-1])
            await until(lambda: daemon.names == names)  # noqa: B023
            assert waiting(spool) == names
        daemon.may_write.set()
        await until(lambda: waiting(spool) == [])

    assert daemon.names == ["e1", "e2", "e3"]


async def test_of_a_store_that_does_not_write_only_so_many_hooks_wait(spool: Path) -> None:
    names = [f"e{number:04}" for number in range(HELD + 50)]
    for name in names:
        put(spool, name)
    daemon = Daemon("s1-1")
    daemon.may_write.clear()

    async with running(spool, daemon) as hooks:
        await until(lambda: len(daemon.names) == HELD)
        await asyncio.sleep(PAUSE_S * 3)  # long enough to take more
        assert hooks.counts()["backlog"] == 50
        daemon.may_write.set()
        await until(lambda: waiting(spool) == [])

    assert daemon.names == names


async def test_a_flood_is_noted(spool: Path) -> None:
    put(spool, "0")
    for number in range(1, 20_002):
        os.link(spool / "new" / "0", spool / "new" / str(number))
    daemon = Daemon("s1-1")

    async with running(spool, daemon):
        await until(lambda: bool(daemon.fed))

    assert daemon.fed == [Noted("hooks.flooded", (("removed", 2),))]


async def test_a_spool_that_cannot_be_read_for_a_while_is_said_once_and_read_again(spool: Path) -> None:
    put(spool, "e1")
    daemon = Daemon("s1-1")
    daemon.may_write.clear()

    with capture_logs() as logs:
        async with running(spool, daemon):
            await until(lambda: daemon.names == ["e1"])
            os.rename(spool / "new", spool / "away")
            daemon.may_write.set()  # what is to be removed now cannot be reached
            await until(lambda: bool(logs))
            await asyncio.sleep(RETRY_S * 1.5)  # long enough to say it again
            os.rename(spool / "away", spool / "new")
            await until(lambda: waiting(spool) == [])  # no hook came that would have told of it

    assert daemon.names == ["e1"]
    assert [line["event"] for line in logs] == ["hook spool not read"]
