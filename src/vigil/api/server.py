"""Serving: uvicorn on a socket that we bind ourselves, 0600 from the start, without its ten ticks a second."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from vigil.api.peers import CheckedProtocol


class Server(uvicorn.Server):
    """A server that waits for its end instead of polling ten times a second."""

    def __init__(self, app: FastAPI) -> None:
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=CheckedProtocol,
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

    async def main_loop(self) -> None:
        """Wait until `stop`."""
        await self._ending.wait()

    def stop(self) -> None:
        """End the server."""
        self.should_exit = True
        self._ending.set()

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
