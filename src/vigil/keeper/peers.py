"""Peers: those who speak to the keeper, and its door, which shuts for a moment when no descriptor is left for one."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Callable

from vigil.keeper import wire
from vigil.kernel.shortage import RESERVE, is_shortage
from vigil.kernel.trust import PeerProcess

SHUT_S = 1.0
BACKLOG = 16  # of the listener


class Peer:
    def __init__(self, sock: socket.socket, process: PeerProcess) -> None:
        self.sock = sock
        self.process = process
        self.is_daemon = False
        self.lines = wire.Lines()
        self.outbox = b""

    def close(self) -> None:
        self.process.close()
        self.sock.close()


class KeeperDoor:
    """Takes peers in. A listener without a free descriptor would wake the keeper without end: so it rests."""

    def __init__(self, epoll: select.epoll, log: Callable[[str], None]) -> None:
        self._epoll = epoll
        self._log = log
        self._shut: socket.socket | None = None
        self._opens_at = 0.0

    def take(self, listener: socket.socket, is_daemon: Callable[[Peer], bool]) -> Peer | None:
        """Return the peer that connects; without a free descriptor only a daemon gets one, of the reserve."""
        try:
            return _accept(listener)
        except OSError as error:
            if not is_shortage(error) or error.errno == errno.EAGAIN:
                raise
            self._log(f"no peer is taken for {SHUT_S:g} s: {error}")
        self._epoll.unregister(listener)
        self._shut, self._opens_at = listener, time.monotonic() + SHUT_S
        with RESERVE.given_up():
            for _ in range(BACKLOG):
                peer = _accept(listener)
                if is_daemon(peer):
                    return peer
                peer.close()
        return None

    def wait_s(self) -> float | None:
        """Return how long the door is shut; None if it is open."""
        return None if self._shut is None else max(0.0, self._opens_at - time.monotonic())

    def catch_up(self) -> None:
        """Open the door again when it is time."""
        if self._shut is not None and self._opens_at <= time.monotonic():
            listener, self._shut = self._shut, None
            RESERVE.refill()
            if listener.fileno() >= 0:
                self._epoll.register(listener, select.EPOLLIN)


def _accept(listener: socket.socket) -> Peer:
    sock, _ = listener.accept()
    try:
        sock.setblocking(False)
        return Peer(sock, PeerProcess(sock))
    except OSError:
        sock.close()
        raise
