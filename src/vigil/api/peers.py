"""Who is calling: only our own user; and one that runs below the keeper is an agent, which may read and not change others.

The uid is the kernel's word on the connection, so a socket opened by hand to others still refuses them.
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
    """HTTP over a unix socket for one user: everybody else is hung up on before a byte is read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Check the peer's uid, and keep its pid as the client's address."""
        pid, uid = read_peer(transport.get_extra_info("socket"))
        if uid != os.getuid():
            transport.abort()
            return
        super().connection_made(transport)
        self.client = ("pid", pid)

    def data_received(self, data: bytes) -> None:
        """Read only from a peer that was let in."""
        if self.transport is not None:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say goodbye only to a peer that was let in."""
        if self.transport is not None:
            super().connection_lost(exc)

    def eof_received(self) -> None:
        """Nothing more comes from this peer."""
        if self.transport is not None:
            super().eof_received()


def read_peer(sock: socket.socket) -> tuple[int, int]:
    """Read pid and uid of the other end, as the kernel noted them at connect."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def find_agent(pid: int, keeper_pid: int | None, machine: Machine) -> tuple[bool, Session | None]:
    """Say whether a caller runs below the keeper, and as a process of which session as far as its ancestry shows."""
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
