"""Shortage: which errors are the host's, and a reserve that lets the last calls succeed."""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vigil.kernel import process
from vigil.kernel.shortage import DescriptorReserve, check_descriptors, is_shortage, tells_shortage


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Take every descriptor that this process may still open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = max(map(int, os.listdir("/proc/self/fd"))) + 8
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (top, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                taken.append(os.dup(2))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for fd in taken:
            os.close(fd)


def read_null() -> bytes:
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        return os.read(fd, 1)
    finally:
        os.close(fd)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EAGAIN])
def test_what_the_host_lacks_is_a_shortage(code: int) -> None:
    assert is_shortage(OSError(code, os.strerror(code)))
    assert tells_shortage(f"create window failed: fork failed: {os.strerror(code)}")


def test_a_thread_that_cannot_start_is_a_shortage_also_in_a_group() -> None:
    error = RuntimeError("can't start new thread")

    assert is_shortage(error)
    assert is_shortage(ExceptionGroup("loops", [error, OSError(errno.EMFILE, "")]))
    assert not is_shortage(ExceptionGroup("loops", [error, ValueError("a fault of ours")]))


@pytest.mark.parametrize("error", [FileNotFoundError(errno.ENOENT, ""), RuntimeError("a fault of ours"), ValueError()])
def test_any_other_error_is_none(error: Exception) -> None:
    assert not is_shortage(error)


def test_a_call_without_a_descriptor_gets_one_of_the_reserve() -> None:
    reserve = DescriptorReserve(2)
    try:
        with no_descriptors():
            with pytest.raises(OSError, match="Too many open files"):
                read_null()

            assert reserve.call(read_null) == b""
            assert len(reserve) == 2
    finally:
        reserve.close()


def test_a_reserve_that_was_used_up_comes_back() -> None:
    reserve = DescriptorReserve(2)
    try:
        with no_descriptors(), reserve.given_up():
            kept = [os.dup(2), os.dup(2)]
        reserve.refill()

        assert len(reserve) == 2
        for fd in kept:
            os.close(fd)
    finally:
        reserve.close()


def test_a_call_that_insists_waits_for_its_moment() -> None:
    tries = []

    def try_it() -> int:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise BlockingIOError(errno.EAGAIN, "no process is left")
        return 7

    assert DescriptorReserve(0).insist(time.monotonic() + 10.0, try_it) == 7
    assert len(tries) == 3


def test_a_call_that_insists_gives_up_in_time() -> None:
    def fail() -> None:
        raise BlockingIOError(errno.EAGAIN, "no process is left")

    with pytest.raises(BlockingIOError):
        DescriptorReserve(0).insist(0.0, fail)


def test_a_look_that_fails_half_way_leaves_no_descriptor_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        check_descriptors(4)

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_pidfd_whose_owner_cannot_be_read_is_closed_and_says_nothing_of_it() -> None:
    start_ticks = process.read_start_ticks(os.getpid())
    assert start_ticks is not None
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = max(map(int, os.listdir("/proc/self/fd"))) + 2
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (top, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                taken.append(os.dup(2))
        os.close(taken.pop())  # one is left: for the pidfd, and not for its owner's stat

        with pytest.raises(OSError, match="Too many open files"):
            process.open_pidfd(os.getpid(), start_ticks)

        taken.append(os.dup(2))  # the one is free again
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for fd in taken:
            os.close(fd)
