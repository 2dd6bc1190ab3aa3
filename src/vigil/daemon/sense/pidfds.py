"""Pidfds: one epoll behind one fd of the loop; each pidfd tells once that its process ended.

The loop's own readers cost three times the memory, and each must be removed by hand before a death can be told."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable

TAKEN_AT_ONCE = 64  # the rest comes with the loop's next turn


class Pidfds:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._told: dict[int, Callable[[], None]] = {}
        self._is_heard = False

    def add(self, pidfd: int, ended: Callable[[], None]) -> None:
        """Own a pidfd, and call `ended` once its process has ended; OSError closes it."""
        if not self._is_heard:
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._readable)
            self._is_heard = True
        try:
            self._epoll.register(pidfd, select.EPOLLIN | select.EPOLLONESHOT)
        except OSError:  # the kernel has no room for one more
            os.close(pidfd)
            raise
        self._told[pidfd] = ended

    def drop(self, pidfd: int) -> None:
        """Close a pidfd and call nothing for it."""
        del self._told[pidfd]
        self._epoll.unregister(pidfd)
        os.close(pidfd)

    def close(self) -> None:
        for pidfd in list(self._told):
            self.drop(pidfd)
        if self._is_heard:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _readable(self) -> None:
        ended = [(pidfd, self._told[pidfd]) for pidfd, _ in self._epoll.poll(0, TAKEN_AT_ONCE)]
        for pidfd, tell in ended:
            if self._told.get(pidfd) is tell:  # else an earlier call dropped it, and another may have its number now
                tell()
