"""HTTP/1.1 as far as these clients need it: one request a connection, answers whole or in pieces, and ways to break off."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

READ_S = 30.0
NO_WAIT = struct.pack("ii", 1, 0)  # close by RST
REASONS = {200: "OK", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 429: "Too Many Requests"}


class HungUpError(Exception):
    """The client went away before it had its answer."""


@dataclass(frozen=True)
class Incoming:
    """A request as it came."""

    method: str
    target: str
    body: bytes

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


async def read_request(reader: asyncio.StreamReader) -> Incoming | None:
    """Read a request; None when there is none."""
    async with asyncio.timeout(READ_S):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            method, target, _version = first.split(" ")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            return Incoming(method, target, await _read_body(reader, headers))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return body


class Reply:
    """The answer to one request, and the ear for a client that hangs up meanwhile."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._gone = asyncio.ensure_future(_wait_gone(reader))

    async def send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        """Send a whole answer."""
        body = json.dumps(value).encode()
        await self._write(
            _head(status, {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})})
        )
        await self._write(body)

    async def begin_stream(self) -> None:
        """Begin an answer that comes in pieces."""
        await self._write(_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))

    async def send_piece(self, text: str) -> None:
        """Send one piece; an empty one ends the answer."""
        data = text.encode()
        await self._write(b"%x\r\n%s\r\n" % (len(data), data))

    async def wait(self, seconds: float | None) -> None:
        """Let time pass, without end if it is not said how much; a client that hangs up ends it."""
        done, _ = await asyncio.wait({self._gone}, timeout=seconds)
        if done:
            raise HungUpError

    def reset(self) -> None:
        """Break the connection off, so that the client sees a reset."""
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_WAIT)
        self._writer.transport.abort()

    async def close(self) -> None:
        """End the connection."""
        self._gone.cancel()
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass

    async def _write(self, data: bytes) -> None:
        if self._gone.done():
            raise HungUpError
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError as error:
            raise HungUpError from error


async def _wait_gone(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(4096):
            pass
    except ConnectionError:
        pass


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
