"""Watched files and folders: the kernel's inotify in the daemon's loop. A library would add 50 to 100 ms."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from vigil.kernel.inotify import (
    CAME,
    IN_IGNORED,
    IN_MODIFY,
    IN_ONESHOT,
    IN_ONLYDIR,
    IN_Q_OVERFLOW,
    LIBC,
    add_watch,
    open_inotify,
    read_events,
)

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
        self._path, self._mask = os.fspath(path), mask | IN_ONLYDIR
        self._on_change = on_change
        try:
            self.renew()
        except OSError:
            self.close()
            raise

    def renew(self) -> None:
        """Watch the folder that has the path now; a folder that was removed and made anew is another."""
        add_watch(self._fd, self._path, self._mask)

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
