"""Serving: uvicorn on a socket that we bind ourselves, without its ten ticks a second; a lost one is made anew (P15)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus

import uvicorn
from fastapi import FastAPI

from vigil.api.connections import REQUEST_S, Places, refusal
from vigil.api.peers import PeerProtocol, find_agent
from vigil.daemon.base.log import log
from vigil.kernel.own_socket import OwnSocket
from vigil.kernel.shortage import RESERVE
from vigil.kernel.trust import Untrusted, read_peer

AT_ONCE = 16  # connections taken in one turn of the loop: a flood waits in the kernel, not in the daemon
FULL_S = 1.0
TAKEN_SHORT = 4  # callers, of whom each takes two descriptors
BACKLOG = 512


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
        who = partial(find_agent, machine=daemon.machine, boot=daemon.boot)
        self._places = Places(lambda pid: who(pid, daemon.keeper.identity)[0] is not False)
        self._tasks: set[asyncio.Task[object]] = set()
        self._trouble = ""

    async def serve_at(self, own: OwnSocket) -> None:
        """Serve on a socket of ours until `stop`."""
        self._own = own
        await self.serve()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections ourselves: asyncio's accept goes on and on when descriptors run out."""
        assert sockets is None, "ours is made anew"
        self.servers = []
        self._accept_again(self._own.listener)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and end those there are."""
        asyncio.get_running_loop().remove_reader(self._own.listener)
        self._own.close()
        await super().shutdown(sockets)

    def mend(self) -> bool:
        """Listen anew if the socket's file is gone; say whether we did.

        One on which another process listens stays: commands send it nothing, and name it to a person (P13)."""
        if not self.started or self.should_exit or not self._own.is_lost():
            return False
        try:
            if RESERVE.call(self._own.is_taken):
                return False
            before = RESERVE.call(self._own.make)
        except (OSError, Untrusted) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                log.error("the socket is lost and cannot be made anew", socket=self._own.path, why=str(error))
            return False
        self._trouble = ""
        asyncio.get_running_loop().remove_reader(before)
        self._accept_again(self._own.listener)
        for _ in range(BACKLOG // AT_ONCE):
            self._accept(before)  # those who connected before the file was gone
        before.close()
        return True

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
        if not self.should_exit and listener is self._own.listener:
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
