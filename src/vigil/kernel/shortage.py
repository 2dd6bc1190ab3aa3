"""Shortage: which errors mean that the host has no more processes, descriptors, memory or room, and a reserve against one.

Such an error is no fault of a launch, and says nothing of a process (P7). Standard library only, because the keeper uses it."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
NO_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
LACKS = NO_DESCRIPTORS | NO_DISK | {errno.EAGAIN, errno.ENOMEM}
AGAIN_S = 0.5
P = ParamSpec("P")
T = TypeVar("T")


NO_THREAD = "can't start new thread"  # as Python says it


def is_shortage(error: BaseException) -> bool:
    """Say whether an error, or each of a group, is the host's: a later try may well succeed."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_shortage, error.exceptions))
    if isinstance(error, OSError):
        return error.errno in LACKS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and NO_THREAD in str(error))


def tells_shortage(words: str) -> bool:
    """Say whether another program's message ends in the kernel's words for a shortage."""
    return any(os.strerror(code) in words for code in LACKS)


def check_descriptors(wanted: int) -> None:
    """Raise OSError unless so many descriptors are free."""
    opened: list[int] = []
    try:
        for _ in range(wanted):
            opened.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
    finally:
        for fd in opened:
            os.close(fd)


class DescriptorReserve:
    """Descriptors held open, to be given up for a moment when there are no others.

    Made early they have low numbers: they count also when somebody lowers our limit."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: list[int] = []
        self.refill()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, size: int) -> None:
        """Hold so many from now on."""
        self._size = size
        self.refill()

    def refill(self) -> None:
        """Hold the reserve again, as far as there are descriptors."""
        while len(self._held) < self._size:
            try:
                self._held.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Free the reserve for a block."""
        self.close()
        try:
            yield
        finally:
            self.refill()

    def call(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return what a call returns; one that finds no descriptor is made again without the reserve."""
        try:
            return work(*args, **named)
        except OSError as error:
            if error.errno not in NO_DESCRIPTORS:
                raise
        with self.given_up():
            return work(*args, **named)

    def insist(self, until: float, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return what a call returns; for what is short it waits, up to a moment of the monotonic clock."""
        while True:
            try:
                return self.call(work, *args, **named)
            except OSError as error:
                if not is_shortage(error) or time.monotonic() + AGAIN_S > until:
                    raise
            time.sleep(AGAIN_S)

    def close(self) -> None:
        while self._held:
            os.close(self._held.pop())


RESERVE = DescriptorReserve(0)  # of this process, once its main holds it: for calls of a person, notices and records of deaths
