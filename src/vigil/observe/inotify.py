"""inotify, raw: one instance for the whole daemon. A library would add 50 to 100 ms (docs/performance.md)."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable, Iterator

IN_MODIFY = 0x2
IN_IGNORED = 0x8000
IN_ONESHOT = 0x80000000
EVENT = struct.Struct("iIII")
LIBC = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """Says once that a file was written to; whoever wants to know again asks again.

    Once, because an agent that prints without pause must not wake the daemon without pause.
    """

    def __init__(self, on_written: Callable[[str], None]) -> None:
        self._fd = open_inotify()
        self._on_written = on_written
        self._paths: dict[int, str] = {}
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def watch(self, path: str) -> None:
        """Say so when a file is written to next; FileNotFoundError if there is none."""
        self._paths[add_watch(self._fd, path, IN_MODIFY | IN_ONESHOT)] = path

    def close(self) -> None:
        """Watch nothing any more."""
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        for number, mask, _ in read_events(self._fd):
            path = self._paths.pop(number, None) if mask & (IN_MODIFY | IN_IGNORED) else None
            if path is not None and mask & IN_MODIFY:
                self._on_written(path)


def open_inotify() -> int:
    """Return the descriptor of a new instance that watches nothing yet."""
    fd: int = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"inotify_init1: {os.strerror(code)}")
    return fd


def add_watch(fd: int, path: str, mask: int) -> int:
    """Watch a path; return the number its events carry."""
    number: int = LIBC.inotify_add_watch(fd, os.fsencode(path), ctypes.c_uint32(mask))
    if number < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return number


def read_events(fd: int) -> Iterator[tuple[int, int, str]]:
    """Yield what happened: the watch's number, the mask, and the name in a watched folder (empty where there is none)."""
    data = os.read(fd, 65536)
    at = 0
    while at < len(data):
        number, mask, _, length = EVENT.unpack_from(data, at)
        at += EVENT.size + length
        yield number, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))
