"""Who is calling: only our own user; a caller below the keeper is an agent, which may read and not change others.

The kernel gives the connection's uid, so a socket that was opened to others by hand still refuses them. A caller that is
gone is no caller: its connection may be in other hands.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from vigil.api.connections import BoundedProtocol
from vigil.core.machine import Machine
from vigil.core.model.session import Session
from vigil.kernel.process import is_other_boot, read_stat
from vigil.kernel.shortage import RESERVE
from vigil.kernel.trust import PeerProcess

DEPTH = 64
LOOKS = 5
Identity = tuple[int, int]  # a pid and its start: the number alone may be another's by now


class PeerProtocol(BoundedProtocol):
    """HTTP over a unix socket, from a process."""

    peer: PeerProcess | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Keep the peer's process for the routes; the server has looked at its uid."""
        super().connection_made(transport)
        try:
            self.peer = RESERVE.call(PeerProcess, transport.get_extra_info("socket"))
        except OSError as error:  # that says nothing of the caller: it may ask again
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"the daemon can take no more callers: {error.strerror}")
            return
        self.client = ("pid", self.peer.pid)
        self.app_state = {**self.app_state, "peer": self.peer}

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the peer."""
        if self.peer is not None:
            self.peer.close()
        super().connection_lost(exc)


def find_agent(pid: int, keeper: Identity | None, machine: Machine, boot: str) -> tuple[bool | None, Session | None]:
    """Say whether a caller runs below the keeper, and in which session; None if its ancestry cannot be read."""
    leaders = {
        (process.pid, process.start_ticks): session
        for session in machine.sessions.values()
        if session.launch is not None
        for process in (session.launch.process, session.launch.root, session.launch.server)
        if process is not None and not is_other_boot(process.boot, boot)
    }
    ancestry = _ancestry(pid, keeper)
    if ancestry is None:
        return None, None  # it changes as we look, or /proc is gone: no proof that this is a person
    owner = next((leaders[one] for one in ancestry if one in leaders), None)
    return keeper in ancestry or owner is not None, owner


def _ancestry(pid: int, keeper: Identity | None) -> list[Identity] | None:
    """Return a process and its ancestors up to the keeper, read twice alike: a parent may end between two looks."""
    before = _read_ancestry(pid, keeper)
    for _ in range(LOOKS):
        now = _read_ancestry(pid, keeper)
        if now is not None and now == before:
            return now
        before = now
    return None


def _read_ancestry(pid: int, keeper: Identity | None) -> list[Identity] | None:
    found: list[Identity] = []
    while len(found) < DEPTH:
        stat = read_stat(pid)
        if stat is None:
            return None
        found.append(stat.key)
        if stat.key == keeper or stat.ppid <= 1:
            break
        pid = stat.ppid
    return found
