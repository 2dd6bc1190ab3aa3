"""The keeper's socket: takes peers in, rests without a descriptor for one, and is made anew when its file is gone (P15).

inotify wakes the keeper when something in the folder goes; where that cannot be had, it looks every two seconds.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable

from vigil.keeper.peers import Peer, accept
from vigil.kernel.inotify import IN_MOVED_TO, IN_ONLYDIR, IN_SELF_GONE, WENT, add_watch, open_inotify
from vigil.kernel.own_socket import OwnSocket
from vigil.kernel.shortage import RESERVE, is_shortage
from vigil.kernel.trust import Untrusted

LOOK_S = 2.0
PAUSE_S = 0.2  # a file that is removed again and again must not keep us busy
REST_S = 1.0  # without a free descriptor its connections would wake the keeper without end
BACKLOG = 16


class KeeperSocket:
    def __init__(
        self,
        epoll: select.epoll,
        own: OwnSocket,
        is_daemon: Callable[[Peer], bool],
        on_peer: Callable[[Peer], None],
        log: Callable[[str], None],
    ) -> None:
        self._epoll = epoll
        self._own = own
        self._is_daemon = is_daemon
        self._on_peer = on_peer
        self._log = log
        self._inotify: int | None = None
        self._watched = False
        self._next_at = 0.0
        self._rests_until: float | None = None
        self._trouble = ""
        self._listen()
        self._watch()

    def fileno(self) -> int:
        """The descriptor that takes connections now."""
        return self._own.listener.fileno()

    def owns(self, fd: int) -> bool:
        return fd in (self.fileno(), self._inotify)

    def readable(self, fd: int) -> None:
        """Take a peer in, or what inotify says; `catch_up` looks at the file after each wake-up."""
        if fd == self._inotify:
            os.read(fd, 65536)
        elif (peer := self._take()) is not None:
            self._on_peer(peer)

    def _take(self) -> Peer | None:
        """Return the peer that connects; without a free descriptor only a daemon gets one, of the reserve."""
        try:
            return accept(self._own.listener)
        except OSError as error:
            if not is_shortage(error) or error.errno == errno.EAGAIN:
                raise
            self._log(f"no peer is taken for {REST_S:g} s: {error}")
        self._epoll.unregister(self._own.listener)
        self._rests_until = time.monotonic() + REST_S
        with RESERVE.given_up():
            for _ in range(BACKLOG):
                peer = accept(self._own.listener)
                if self._is_daemon(peer):
                    return peer
                peer.close()
        return None

    def wait_s(self) -> float | None:
        """Return how long the keeper may sleep: without end while inotify and connections would wake it."""
        looks_at = None if self._watched and not self._own.is_lost() else self._next_at
        next_at = min((at for at in (looks_at, self._rests_until) if at is not None), default=None)
        return None if next_at is None else max(0.0, next_at - time.monotonic())

    def catch_up(self) -> None:
        """Take peers again after a rest; look whether the socket's file is there, and if not, make it anew."""
        now = time.monotonic()
        if self._rests_until is not None and self._rests_until <= now:
            self._listen()
        if now < self._next_at:
            return
        if self._own.is_lost():
            self._next_at = now + (PAUSE_S if self._make() else LOOK_S)
        elif not self._watched:
            self._next_at = now + LOOK_S
            self._watch()

    def _make(self) -> bool:
        try:
            before = RESERVE.call(self._own.make)
        except (OSError, Untrusted) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._log(f"the socket {self._own.path} is lost and cannot be made anew: {error}")
            return False
        self._trouble = ""
        self._log(f"the socket {self._own.path} was lost and is made anew")
        if self._rests_until is None:
            self._epoll.unregister(before)
        self._listen()
        self._watch()
        _take_rest(before, self._on_peer)
        before.close()
        return True

    def _listen(self) -> None:
        self._rests_until = None
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


def _take_rest(listener: socket.socket, on_peer: Callable[[Peer], None]) -> None:
    """Take those who connected before the file was gone."""
    while True:
        try:
            peer = accept(listener)
        except OSError:
            return
        on_peer(peer)
