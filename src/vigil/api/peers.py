"""Who is calling: only our own user; a caller below the keeper is an agent, which may read and not change others.

The kernel gives the connection's uid, so a socket that was opened to others by hand still refuses them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vigil.core.machine import Machine
from vigil.core.model.session import Session
from vigil.kernel.process import read_stat

DEPTH = 64


class CheckedProtocol(HttpToolsProtocol):
    """HTTP over a unix socket for one user; it hangs up on others before reading."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Check the peer's uid, and keep its pid as the client's address."""
        pid, uid = read_peer(transport.get_extra_info("socket"))
        if uid != os.getuid():
            transport.abort()
            return
        super().connection_made(transport)
        self.client = ("pid", pid)

    def data_received(self, data: bytes) -> None:
        """Read only from an admitted peer."""
        if self.transport is not None:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close only the connection of an admitted peer."""
        if self.transport is not None:
            super().connection_lost(exc)

    def eof_received(self) -> None:
        """Note that an admitted peer sends no more."""
        if self.transport is not None:
            super().eof_received()


def read_peer(sock: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the other end, as the kernel noted them at connect."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def find_agent(pid: int, keeper_pid: int | None, machine: Machine) -> tuple[bool, Session | None]:
    """Say whether a caller runs below the keeper, and in which session, as far as its ancestry shows."""
    leaders = {
        process.pid: session
        for session in machine.sessions.values()
        if session.launch is not None
        for process in (session.launch.process, session.launch.root, session.launch.server)
        if process is not None
    }
    owner: Session | None = None
    for _ in range(DEPTH):
        owner = owner or leaders.get(pid)
        if pid == keeper_pid:
            return True, owner
        stat = read_stat(pid)
        if stat is None or stat.ppid <= 1:
            return owner is not None, owner
        pid = stat.ppid
    return owner is not None, owner
