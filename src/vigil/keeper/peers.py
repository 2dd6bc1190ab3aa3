"""Peers: those who speak to the keeper, each with its process as the kernel knows it."""

from __future__ import annotations

import socket

from vigil.keeper import wire
from vigil.kernel.trust import PeerProcess


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


def accept(listener: socket.socket) -> Peer:
    """Return the peer that connects; OSError takes none, and leaves nothing open."""
    sock, _ = listener.accept()
    try:
        sock.setblocking(False)
        return Peer(sock, PeerProcess(sock))
    except OSError:
        sock.close()
        raise
