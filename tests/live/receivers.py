"""Receivers on loopback: a web server and a mail server that write down what they get, and answer as a test wants."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from typing import Any

Json = dict[str, Any]


@dataclass
class WebReceiver:
    """What was posted, and what is answered."""

    port: int = 0
    status: int = 200
    hangs: threading.Event | None = None  # an answer waits for it
    answer: bytes | None = None  # instead of one with `status`; what hangs then is the rest of it
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/t0psecretpath"

    def notices(self) -> list[Json]:
        """Return the notices among what was posted."""
        return [json.loads(body) for _, _, body in list(self.got)]


@contextmanager
def web_receiver() -> Iterator[WebReceiver]:
    """Serve a receiver of web requests."""
    receiver = WebReceiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append((self.path, dict(self.headers.items()), body))
            if receiver.answer is not None:
                self.wfile.write(receiver.answer)
            if receiver.hangs is not None:
                receiver.hangs.wait(60)
            if receiver.answer is not None:
                return
            self.send_response(receiver.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            if receiver.hangs is not None:
                receiver.hangs.set()
            server.shutdown()
            thread.join()


@dataclass
class MailReceiver:
    """What was mailed."""

    port: int = 0
    got: list[Any] = field(default_factory=list)


@contextmanager
def mail_receiver() -> Iterator[MailReceiver]:
    """Serve a receiver of mail: as much of SMTP as a sender without a login needs."""
    receiver = MailReceiver()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 here")
            while line := self.rfile.readline():
                verb = line[:4].upper()
                if verb == b"DATA":
                    self._say("354 go on")
                    receiver.got.append(message_from_bytes(self._read_mail(), policy=policy.default))
                self._say("221 bye" if verb == b"QUIT" else "250 ok")

        def _read_mail(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line)
            return b"".join(lines)

        def _say(self, words: str) -> None:
            self.wfile.write(f"{words}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
