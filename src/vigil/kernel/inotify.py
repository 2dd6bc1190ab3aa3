"""The kernel's inotify, raw: a descriptor that tells what changed in files and folders. Standard library only."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator

IN_MODIFY = 0x2
IN_CLOSE_WRITE = 0x8
IN_MOVED_FROM, IN_MOVED_TO = 0x40, 0x80
IN_CREATE, IN_DELETE = 0x100, 0x200
IN_SELF_GONE = 0x400 | 0x800
IN_Q_OVERFLOW, IN_IGNORED = 0x4000, 0x8000
IN_ONLYDIR, IN_DONT_FOLLOW, IN_ONESHOT = 0x01000000, 0x02000000, 0x80000000
CAME = IN_MOVED_TO | IN_CLOSE_WRITE
WENT = IN_MOVED_FROM | IN_DELETE
IN_FOLDER = IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_SELF_GONE | IN_ONLYDIR
EVENT = struct.Struct("iIII")
LIBC = ctypes.CDLL(None, use_errno=True)


def open_inotify() -> int:
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
    """Yield each event: the watch's number, the mask, and the name in a watched folder, if any."""
    data = os.read(fd, 65536)
    at = 0
    while at < len(data):
        number, mask, _, length = EVENT.unpack_from(data, at)
        at += EVENT.size + length
        yield number, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))
