"""inotify, raw: one instance for the whole daemon. A library would add 50 to 100 ms."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

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
REMEMBERED = 10_000  # watches that fired of late

Who = TypeVar("Who")


class _Instance:
    """One descriptor of the kernel's, which the loop reads."""

    def __init__(self) -> None:
        self._fd = open_inotify()
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        raise NotImplementedError


class Inotify(_Instance):
    """Tells once that a file was written to: an agent that prints without pause must not wake us without pause."""

    def __init__(self, on_written: Callable[[str], None]) -> None:
        super().__init__()
        self._on_written = on_written
        self._paths: dict[int, str] = {}

    def watch(self, path: str) -> None:
        """Tell the next write to a file; FileNotFoundError if there is none."""
        self._paths[add_watch(self._fd, path, IN_MODIFY | IN_ONESHOT)] = path

    def _read(self) -> None:
        for number, mask, _ in read_events(self._fd):
            path = self._paths.pop(number, None) if mask & (IN_MODIFY | IN_IGNORED) else None
            if path is not None and mask & IN_MODIFY:
                self._on_written(path)


class FolderWatch(_Instance):
    """Passes the names that came or went to `on_change`; an empty list (overflow, folder gone) means: look at everything."""

    def __init__(self, path: str | os.PathLike[str], on_change: Callable[[list[str]], None], mask: int = CAME) -> None:
        super().__init__()
        self._on_change = on_change
        try:
            add_watch(self._fd, os.fspath(path), mask | IN_ONLYDIR)
        except OSError:
            self.close()
            raise

    def _read(self) -> None:
        names = [name for _, _, name in read_events(self._fd)]
        self._on_change(names if all(names) else [])  # an event without a name is about the folder, or about the queue


class Watches(Generic[Who]):
    """Tells all who asked, once, that a file or folder changed; any thread may ask.

    Asking takes as long as the file system, and one that hangs must not hold up the loop: so threads ask, and the loop hears of
    it later, perhaps after the watch has fired."""

    def __init__(self, on_event: Callable[[Who], None]) -> None:
        self._fd = open_inotify()
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)
        self._asked: dict[int, set[Who]] = {}
        self._fired: dict[int, None] = {}  # the kernel gives no number again
        self._lock = threading.Lock()
        self._asking = 0
        self._closed = False

    def ask(self, path: str, mask: int, who: Who) -> None:
        """Tell when one of these events comes, or none can come any more; OSError where it cannot be watched."""
        with self._held() as fd:
            number = add_watch(fd, path, mask | IN_ONESHOT)
        try:
            self._loop.call_soon_threadsafe(self._adopt, number, who)
        except RuntimeError:
            pass  # the loop has ended

    def forget(self, those: Iterable[Who]) -> None:
        unwanted = set(those)
        for number, asked in list(self._asked.items()):
            asked -= unwanted
            if not asked:
                del self._asked[number]
                LIBC.inotify_rm_watch(self._fd, number)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        with self._lock:
            self._closed = True
            self._close_unless_asked()

    @contextmanager
    def _held(self) -> Iterator[int]:
        """Keep the descriptor open while a thread asks: once closed, its number may be another file's."""
        with self._lock:
            if self._closed:
                raise OSError(errno.EBADF, "nothing is watched any more")
            self._asking += 1
        try:
            yield self._fd
        finally:
            with self._lock:
                self._asking -= 1
                self._close_unless_asked()

    def _close_unless_asked(self) -> None:
        if self._closed and not self._asking:
            os.close(self._fd)

    def _adopt(self, number: int, who: Who) -> None:
        if self._closed:
            return
        if number in self._fired:
            self._on_event(who)
        else:
            self._asked.setdefault(number, set()).add(who)

    def _read(self) -> None:
        for number, mask, _ in read_events(self._fd):
            for fired in list(self._asked) if mask & IN_Q_OVERFLOW else [number]:
                self._fire(fired)

    def _fire(self, number: int) -> None:
        self._fired[number] = None
        if len(self._fired) > REMEMBERED:
            del self._fired[next(iter(self._fired))]
        for who in self._asked.pop(number, ()):
            self._on_event(who)


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
