"""The keeper's socket: connections in, and made anew when its file is gone (P15).

inotify wakes the keeper when something in the folder goes; where that cannot be had, it looks every two seconds.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable

from vigil.kernel.inotify import IN_MOVED_TO, IN_ONLYDIR, IN_SELF_GONE, WENT, add_watch, open_inotify
from vigil.kernel.own_socket import OwnSocket
from vigil.kernel.trust import Untrusted

LOOK_S = 2.0
PAUSE_S = 0.2  # a file that is removed again and again must not keep us busy
BACKLOG = 16


class KeeperSocket:
    def __init__(
        self, epoll: select.epoll, own: OwnSocket, on_connection: Callable[[socket.socket], None], log: Callable[[str], None]
    ) -> None:
        self._epoll = epoll
        self._own = own
        self._on_connection = on_connection
        self._log = log
        self._inotify: int | None = None
        self._watched = False
        self._next_at = 0.0
        self._trouble = ""
        self._listen()
        self._watch()

    def fileno(self) -> int:
        """The descriptor that takes connections now."""
        return self._own.listener.fileno()

    def owns(self, fd: int) -> bool:
        return fd in (self.fileno(), self._inotify)

    def readable(self, fd: int) -> None:
        """Take a connection in, or what inotify says; `catch_up` looks at the file after each wake-up."""
        if fd == self._inotify:
            os.read(fd, 65536)
        else:
            self._on_connection(self._own.listener.accept()[0])

    def wait_s(self) -> float | None:
        """Return how long the keeper may sleep: without end while inotify would wake it."""
        if self._watched and not self._own.is_lost():
            return None
        return max(0.0, self._next_at - time.monotonic())

    def catch_up(self) -> None:
        """Look whether the socket's file is there; if not, make it anew."""
        now = time.monotonic()
        if now < self._next_at:
            return
        if self._own.is_lost():
            self._next_at = now + (PAUSE_S if self._make() else LOOK_S)
        elif not self._watched:
            self._next_at = now + LOOK_S
            self._watch()

    def _make(self) -> bool:
        try:
            before = self._own.make()
        except (OSError, Untrusted) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._log(f"the socket {self._own.path} is lost and cannot be made anew: {error}")
            return False
        self._trouble = ""
        self._log(f"the socket {self._own.path} was lost and is made anew")
        self._listen()
        self._watch()
        self._epoll.unregister(before)
        _take_rest(before, self._on_connection)
        before.close()
        return True

    def _listen(self) -> None:
        self._own.listener.setblocking(False)
        self._epoll.register(self._own.listener, select.EPOLLIN)

    def _watch(self) -> None:
        """Have inotify tell what goes from the folder, or comes in the place of another."""
        try:
            if self._inotify is None:
                self._inotify = open_inotify()
                self._epoll.register(self._inotify, select.EPOLLIN)
            folder = os.path.dirname(self._own.path)
            add_watch(self._inotify, folder, WENT | IN_MOVED_TO | IN_SELF_GONE | IN_ONLYDIR)
            self._watched = True
        except OSError:
            self._watched = False  # too many of them on this host


def _take_rest(listener: socket.socket, on_connection: Callable[[socket.socket], None]) -> None:
    """Take those who connected before the file was gone."""
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        on_connection(sock)
