"""Pidfds: those of everybody under watch, behind one fd of the loop; each says once that its process has ended.

The loop's own readers cost three times the memory, and each has to be taken away by hand before a death can be told.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable

TAKEN_AT_ONCE = 64  # the rest comes with the loop's next turn


class Pidfds:
    """An epoll of our own."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._told: dict[int, Callable[[], None]] = {}
        self._resting: dict[int, asyncio.TimerHandle] = {}
        self._is_heard = False

    def add(self, pidfd: int, ended: Callable[[], None]) -> None:
        """Own a pidfd, and say when its process has ended: once."""
        if not self._is_heard:
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._readable)
            self._is_heard = True
        self._told[pidfd] = ended
        self._hear(pidfd)

    def put_off(self, pidfd: int, by_s: float) -> None:
        """Say nothing of a pidfd for a moment, nor wake for it: if its process ends meanwhile, that is told then."""
        self._epoll.unregister(pidfd)
        self._resting[pidfd] = asyncio.get_running_loop().call_later(by_s, self._rested, pidfd)

    def drop(self, pidfd: int) -> None:
        """Close a pidfd: nothing more is said of it."""
        del self._told[pidfd]
        if (resting := self._resting.pop(pidfd, None)) is None:
            self._epoll.unregister(pidfd)
        else:
            resting.cancel()
        os.close(pidfd)

    def close(self) -> None:
        """Close all of them."""
        for pidfd in list(self._told):
            self.drop(pidfd)
        if self._is_heard:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _hear(self, pidfd: int) -> None:
        self._epoll.register(pidfd, select.EPOLLIN | select.EPOLLONESHOT)

    def _rested(self, pidfd: int) -> None:
        del self._resting[pidfd]
        self._hear(pidfd)

    def _readable(self) -> None:
        ended = [(pidfd, self._told[pidfd]) for pidfd, _ in self._epoll.poll(0, TAKEN_AT_ONCE)]
        for pidfd, tell in ended:
            if self._told.get(pidfd) is not tell:
                continue  # it was dropped because of one before it, and its number may be another's
            if pidfd not in self._resting:
                tell()
