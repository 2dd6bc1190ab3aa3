"""How much of the daemon its callers may take: connections, bytes and time of one request."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST = 256  # open connections of all callers
MOST_OF_AGENTS = 128  # beyond these, only callers outside the keeper's tree come in: `vigil ls` answers meanwhile
MOST_OF_ONE = 16  # open connections of one process
HEAD_BYTES = 64 << 10
BODY_BYTES = 1 << 20
REQUEST_S = 10.0  # from the first byte of a request, or from connecting, to its last byte


class Places:
    """Counts the open connections of each process."""

    def __init__(self, is_agent: Callable[[int], bool]) -> None:
        self._is_agent = is_agent
        self._of: Counter[int] = Counter()

    def take(self, pid: int) -> str:
        """Take a place for a caller; words say why there is none."""
        open_now = self._of.total()
        if self._of[pid] >= MOST_OF_ONE:
            return f"process {pid} has {MOST_OF_ONE} connections open, and may have no more"
        if open_now >= MOST or (open_now >= MOST_OF_AGENTS and self._is_agent(pid)):
            return f"{open_now} connections are open, and no more are let in"
        self._of[pid] += 1
        return ""

    def give_back(self, pid: int) -> None:
        """Free a caller's place."""
        self._of[pid] -= 1
        if self._of[pid] <= 0:
            del self._of[pid]


class BoundedProtocol(HttpToolsProtocol):
    """HTTP that refuses what is too large or too slow before it reaches a route."""

    closed: Callable[[], None] | None = None
    request_s = REQUEST_S
    _head_bytes = _body_bytes = 0
    _in_body = _refused = False
    _slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the caller time for one request."""
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the caller's place, and its timer."""
        self._request_read()
        if self.closed is not None:
            self.closed()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head has grown too long."""
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._in_body and self._head_bytes > HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a request's head has at most {HEAD_BYTES >> 10} KiB")

    def on_message_begin(self) -> None:
        """Begin a request, and its time."""
        super().on_message_begin()
        self._await_request()

    def on_headers_complete(self) -> None:
        """Start the request, unless its body is said to be too long."""
        self._in_body, self._head_bytes, self._body_bytes = True, 0, 0
        declared = next((value for name, value in self.headers if name == b"content-length"), b"0")
        if int(declared) > BODY_BYTES:
            self._too_long()
        elif not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a piece of a body, up to the limit."""
        self._body_bytes += len(body)
        if self._body_bytes > BODY_BYTES:
            self._too_long()
        elif not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request's time."""
        self._in_body, self._head_bytes = False, 0
        self._request_read()
        if not self._refused:
            super().on_message_complete()

    def _await_request(self) -> None:
        if self._slow is None:
            self._slow = self.loop.call_later(self.request_s, self._too_slow)

    def _request_read(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _too_slow(self) -> None:
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"a request is sent within {self.request_s:g} s")

    def _too_long(self) -> None:
        self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request's body has at most {BODY_BYTES >> 20} MiB")

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        if not self._refused:
            self._refused = True
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(refusal(status, words))
            self.transport.close()


def refusal(status: HTTPStatus, words: str) -> bytes:
    """Return an answer for a caller who is not served."""
    code = 5 if status is HTTPStatus.SERVICE_UNAVAILABLE else 2
    body = json.dumps({"error": words, "exit_code": code}).encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + body
