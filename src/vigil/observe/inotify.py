"""inotify, raw: one instance for the whole daemon. A library would add 50 to 100 ms (docs/performance.md)."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable

IN_MODIFY = 0x2
IN_IGNORED = 0x8000
IN_ONESHOT = 0x80000000
EVENT = struct.Struct("iIII")


class Inotify:
    """Says once that a file was written to; whoever wants to know again asks again.

    Once, because an agent that prints without pause must not wake the daemon without pause.
    """

    def __init__(self, on_written: Callable[[str], None]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._on_written = on_written
        self._paths: dict[int, str] = {}
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def watch(self, path: str) -> None:
        """Say so when a file is written to next; FileNotFoundError if there is none."""
        number = self._libc.inotify_add_watch(self._fd, os.fsencode(path), ctypes.c_uint32(IN_MODIFY | IN_ONESHOT))
        if number < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
        self._paths[number] = path

    def close(self) -> None:
        """Watch nothing any more."""
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        data = os.read(self._fd, 65536)
        at = 0
        while at < len(data):
            number, mask, _, length = EVENT.unpack_from(data, at)
            at += EVENT.size + length
            path = self._paths.pop(number, None) if mask & (IN_MODIFY | IN_IGNORED) else None
            if path is not None and mask & IN_MODIFY:
                self._on_written(path)
