"""Serving: uvicorn on a socket that we bind ourselves, 0600 from the start, without its ten ticks a second."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from vigil.api.connections import REQUEST_S, Places, refusal
from vigil.api.peers import PeerProtocol, find_agent
from vigil.daemon.base.log import log
from vigil.kernel.shortage import RESERVE
from vigil.kernel.trust import read_peer

AT_ONCE = 16  # connections taken in one turn of the loop: a flood waits in the kernel, not in the daemon
FULL_S = 1.0
TAKEN_SHORT = 4  # callers, of whom each takes two descriptors


class Server(uvicorn.Server):
    """A server that waits for its end instead of polling ten times a second."""

    def __init__(self, app: FastAPI) -> None:
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=PeerProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        self._ending = asyncio.Event()
        daemon = app.state.daemon
        self._places = Places(lambda pid: find_agent(pid, daemon.keeper.pid, daemon.machine)[0] is not False)
        self._tasks: set[asyncio.Task[object]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections ourselves: asyncio's accept goes on and on when descriptors run out."""
        self.servers = []
        for listener in sockets or []:
            listener.setblocking(False)
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and end those there are."""
        for listener in sockets or []:
            asyncio.get_running_loop().remove_reader(listener)
        await super().shutdown(sockets)

    async def main_loop(self) -> None:
        """Wait until `stop`."""
        await self._ending.wait()

    def stop(self) -> None:
        self.should_exit = True
        self._ending.set()

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            try:
                caller, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor, no memory: the callers wait
                log.warning("cannot take a connection", error=error.strerror)
                loop.remove_reader(listener)
                loop.call_later(FULL_S, self._accept_again, listener)
                self._take_one(listener)
                return
            self._admit(caller)

    def _take_one(self, listener: socket.socket) -> None:
        """Answer a few callers a second from the reserve, so that a person hears what is short."""
        RESERVE.close()
        with contextlib.suppress(OSError):
            for _ in range(TAKEN_SHORT):
                self._admit(listener.accept()[0], FULL_S)

    def _accept_again(self, listener: socket.socket) -> None:
        RESERVE.refill()
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _admit(self, caller: socket.socket, request_s: float = REQUEST_S) -> None:
        caller.setblocking(False)
        pid, uid = read_peer(caller)
        if uid != os.getuid():
            caller.close()  # before reading: a socket that was opened to others by hand still refuses them
            return
        if words := self._places.take(pid):
            with contextlib.suppress(OSError):
                caller.send(refusal(HTTPStatus.SERVICE_UNAVAILABLE, words))
            caller.close()
            return
        protocol = PeerProtocol(self.config, self.server_state, {})
        protocol.request_s = request_s
        protocol.closed = lambda: self._places.give_back(pid)
        task = asyncio.ensure_future(asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, caller))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the daemon."""
        yield


def bind(path: Path) -> socket.socket:
    """Bind a listening socket, 0600, in place of a dead daemon's; the caller holds the lock."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    old_mask = os.umask(0o177)
    try:
        listener.bind(str(fresh))
    finally:
        os.umask(old_mask)
    listener.listen(512)
    os.replace(fresh, path)
    return listener
