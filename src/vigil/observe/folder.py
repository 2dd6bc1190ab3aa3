"""Watches a folder, and tells which names came or went."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from vigil.observe.inotify import add_watch, open_inotify, read_events

IN_CLOSE_WRITE = 0x8
IN_MOVED_FROM = 0x40
IN_MOVED_TO = 0x80
IN_DELETE = 0x200
IN_ONLYDIR = 0x01000000

CAME = IN_MOVED_TO | IN_CLOSE_WRITE
WENT = IN_MOVED_FROM | IN_DELETE


class FolderWatch:
    """Passes the names that came or went to `on_change`; an empty list (overflow, folder gone) means: look at everything."""

    def __init__(self, path: str | os.PathLike[str], on_change: Callable[[list[str]], None], mask: int = CAME) -> None:
        self._on_change = on_change
        self._fd = open_inotify()
        try:
            add_watch(self._fd, os.fspath(path), mask | IN_ONLYDIR)
        except OSError:
            os.close(self._fd)
            raise
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        names = [name for _, _, name in read_events(self._fd)]
        self._on_change(names if all(names) else [])  # an event without a name is about the folder, or about the queue
