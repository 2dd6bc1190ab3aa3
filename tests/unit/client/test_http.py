"""An answer of the daemon, as the client reads it off a real socket."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from vigil.client import http


def test_the_daemons_trouble_keeps_its_capitals_and_any_spelling_of_chunked_is_understood(tmp_path: Path) -> None:
    path = str(tmp_path / "api.sock")
    head = b"HTTP/1.1 200 OK\r\nX-Vigil-Trouble: /Home/Vigil is full\r\nTransfer-Encoding: Chunked\r\n\r\n"

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        threading.Thread(target=_answer, args=(listener, head + b"2\r\n{}\r\n0\r\n\r\n"), daemon=True).start()
        answer = http.ask(path, "GET", "/v1/sessions", None, timeout_s=5.0)

    assert (answer.status, answer.trouble, answer.read()) == (200, "/Home/Vigil is full", b"{}")
    answer.close()


def test_a_refusal_sent_before_the_request_was_read_is_read_all_the_same(tmp_path: Path) -> None:
    path = str(tmp_path / "api.sock")

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        threading.Thread(target=_refuse, args=(listener,), daemon=True).start()
        answer = http.ask(path, "POST", "/v1/sessions", b" " * (8 << 20), timeout_s=5.0)  # more than a socket holds

    assert (answer.status, answer.read()) == (503, b"full")
    answer.close()


def _refuse(listener: socket.socket) -> None:
    with listener.accept()[0] as peer:
        peer.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nfull")


def _answer(listener: socket.socket, data: bytes) -> None:
    with listener.accept()[0] as peer:
        peer.recv(65536)
        peer.sendall(data)
