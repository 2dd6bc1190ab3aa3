"""HTTP to our own daemon over its unix socket.

Written by hand: importing `http.client` brings `email` and `ssl`, a quarter of a command's start (docs/performance.md).
It speaks to one server only: one request for each connection, an answer with its length or in chunks."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

from vigil.kernel.trust import connect_own

HEAD_BYTES = 65536


class BadAnswer(OSError):
    """The answer is not one of our daemon."""


class HttpAnswer:
    """An answer with its head read; callers read its body as it comes."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._stream = sock.makefile("rb")
        self.status, headers = self._read_head()
        self.trouble = headers.get(b"x-vigil-trouble", b"").decode("utf-8", "replace")
        self.removed_until = headers.get(b"x-vigil-removed-until", b"").decode("ascii", "replace")
        self._chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
        self._length = int(headers.get(b"content-length", b"0"))

    def chunks(self) -> Iterator[bytes]:
        """Yield the body in the pieces it was sent in."""
        if not self._chunked:
            data = self._stream.read(self._length)
            if len(data) != self._length:
                raise BadAnswer("the daemon hung up in the middle of its answer")
            yield data
            return
        while True:
            size = int(self._stream.readline(32).strip() or b"0", 16)
            data = self._stream.read(size)
            if len(data) != size:
                raise BadAnswer("the daemon hung up in the middle of its answer")
            self._stream.readline(8)
            if size == 0:
                return
            yield data

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.chunks())

    def lines(self) -> Iterator[bytes]:
        """Yield the body line by line."""
        rest = b""
        for data in self.chunks():
            *lines, rest = (rest + data).split(b"\n")
            yield from lines

    def close(self) -> None:
        """Hang up."""
        self._stream.close()
        self._sock.close()

    def _read_head(self) -> tuple[int, dict[bytes, bytes]]:
        words = self._stream.readline(HEAD_BYTES).split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise BadAnswer("no answer")
        headers = {}
        while line := self._stream.readline(HEAD_BYTES).strip():
            key, _, value = line.partition(b":")
            headers[key.strip().lower()] = value.strip()
        return int(words[1]), headers


def ask(
    path: str, method: str, target: str, body: bytes | None, timeout_s: float | None, lock: str | None = None
) -> HttpAnswer:
    """Send a request to our own daemon and return the answer; Untrusted before a byte is sent to a stranger."""
    sock = connect_own(path, timeout_s, lock)
    try:
        head = f"{method} {target} HTTP/1.1\r\nHost: vigil\r\nConnection: close\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        with suppress(BrokenPipeError, ConnectionResetError):  # refused unread: what the daemon said is there to be read
            sock.sendall(head.encode("ascii") + b"\r\n" + (body or b""))
        return HttpAnswer(sock)
    except BaseException:
        sock.close()
        raise
