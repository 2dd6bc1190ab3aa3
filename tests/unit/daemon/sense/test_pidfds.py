"""Pidfds behind one fd of the loop: each end is told once, to the right one, and nothing of what was dropped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Sized
from functools import partial

import pytest

from vigil.daemon.sense import pidfds
from vigil.daemon.sense.pidfds import Pidfds

MANY = pidfds.TAKEN_AT_ONCE + 10


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for process in found:
        process.kill()
        process.wait()


def start(sleepers: list[subprocess.Popen[bytes]], count: int) -> list[int]:
    """Start so many sleepers; return their pidfds."""
    new = [subprocess.Popen(["sleep", "1000"]) for _ in range(count)]
    sleepers.extend(new)
    return [os.pidfd_open(process.pid) for process in new]


async def until_told(told: Sized, count: int) -> None:
    async with asyncio.timeout(10):
        while len(told) < count:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)  # what is told twice is told at once


async def test_each_end_is_told_once_also_when_very_many_end_together(sleepers: list[subprocess.Popen[bytes]]) -> None:
    watched = Pidfds()
    told: list[int] = []
    for number, pidfd in enumerate(start(sleepers, MANY)):
        watched.add(pidfd, partial(told.append, number))

    for process in sleepers:
        process.send_signal(signal.SIGKILL)
    await until_told(told, MANY)

    assert sorted(told) == list(range(MANY))
    watched.close()


async def test_nothing_is_told_of_what_was_dropped_nor_of_whoever_has_its_number_now(
    sleepers: list[subprocess.Popen[bytes]],
) -> None:
    """Two end together; the first to be told of drops the other, whose number is then that of one who lives."""
    watched = Pidfds()
    told: list[str] = []
    pair = start(sleepers, 2)
    (living,) = start(sleepers, 1)

    def drop(other: int) -> None:
        told.append("one of two")
        watched.drop(other)
        os.dup2(living, other, inheritable=False)
        watched.add(other, partial(told.append, "the living"))

    for own, other in (pair, pair[::-1]):
        watched.add(own, partial(drop, other))
    for process in sleepers[:2]:
        process.send_signal(signal.SIGKILL)
        process.wait()
    await until_told(told, 1)
    assert told == ["one of two"]

    sleepers[2].send_signal(signal.SIGKILL)
    await until_told(told, 2)

    assert told == ["one of two", "the living"]
    os.close(living)
    watched.close()


async def test_closing_lets_go_of_every_pidfd(sleepers: list[subprocess.Popen[bytes]]) -> None:
    watched = Pidfds()
    before = len(os.listdir("/proc/self/fd"))
    for pidfd in start(sleepers, 3):
        watched.add(pidfd, lambda: None)

    watched.close()

    assert len(os.listdir("/proc/self/fd")) == before - 1  # its own epoll too
