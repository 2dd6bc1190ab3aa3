"""Callers who take all they can: connections, bytes, time; the owner's commands answer meanwhile."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live.instance import Instance, wait_for
from vigil.api.connections import BODY_BYTES, MOST, MOST_OF_ONE, REQUEST_S
from vigil.client import http
from vigil.errors import Unreachable

# Opens connections from many processes and keeps what it gets; tells how often it was let in.
FLOOD = """
import json, os, socket, sys, time
path, tries, children, told = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
for _ in range(children):
    if os.fork() == 0:
        break
kept, held = [], 0
for _ in range(tries // (children + 1)):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(0.5)
    try:
        sock.connect(path)
        kept.append(sock)
    except OSError:
        time.sleep(0.001)
    for old in kept[:-20]:  # those refused have been told so
        old.close()
    kept = kept[-20:]
open(f"{told}/{os.getpid()}", "w").close()
time.sleep(600)
"""


def test_a_flood_of_connections_leaves_the_owner_served(vigil: Instance, tmp_path: Path) -> None:
    tries, children = (20_000, 39) if os.environ.get("VIGIL_SOAK") else (2_000, 19)
    script = tmp_path / "flood.py"
    script.write_text(FLOOD)
    told = tmp_path / "told"
    told.mkdir()
    vigil.run("flood", sys.executable, str(script), str(vigil.home.api_socket), str(tries), str(children), str(told))
    most = 0

    def look() -> bool:
        nonlocal most
        assert "flood" in vigil.ok("ls")
        most = max(most, len(os.listdir(f"/proc/{vigil.daemon_pid}/fd")))
        return len(list(told.iterdir())) > children

    wait_for(look, 90, "every process of the flood to have had its tries")

    assert most < MOST + 100
    assert "flood" in vigil.ok("ls")
    assert _bytes_of_logs(vigil) < 1 << 20
    assert vigil.client.status()["lateness_ms"]["max"] < 1000


def test_one_process_has_a_few_connections_and_is_told_so(vigil: Instance) -> None:
    vigil.start()
    with ExitStack() as held:
        first, *_ = [held.enter_context(_connect(vigil)) for _ in range(MOST_OF_ONE)]

        with pytest.raises(Unreachable, match=f"{MOST_OF_ONE} connections open"):
            vigil.client.sessions()
        first.close()

        assert wait_for(lambda: vigil.client.sessions() == [], 20, "its place to be free again")
        assert vigil.ok("ls")  # another process


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_beyond_the_limit_is_refused_before_it_is_read(vigil: Instance, chunked: bool) -> None:
    vigil.start()
    before = _resident_kb(vigil)
    with _connect(vigil) as sock:
        how = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 629145600"
        sock.sendall(b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + how + b"\r\n\r\n")
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n" if chunked else b" " * 65536
        sent = 0
        try:
            for _ in range(600 << 20 >> 16):
                sock.sendall(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert b" 413 " in sock.recv(4096)

    assert sent < BODY_BYTES + (2 << 20)
    assert _resident_kb(vigil) - before < 20_000


def test_a_body_at_the_limit_is_read(vigil: Instance) -> None:
    vigil.start()
    body = b'{"x": "' + b"y" * (BODY_BYTES - 9) + b'"}'
    answer = http.ask(str(vigil.home.api_socket), "POST", "/v1/sessions", body, 10)

    assert answer.status == 400  # it was read, and names no session
    answer.close()


def test_a_head_without_end_is_refused(vigil: Instance) -> None:
    vigil.start()
    with _connect(vigil) as sock:
        sock.sendall(b"GET /v1/sessions HTTP/1.1\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for number in range(1000):
                sock.sendall(b"X-%d: %s\r\n" % (number, b"y" * 8000))
        assert b" 431 " in sock.recv(4096)


@pytest.mark.parametrize("half", [b"", b"GET /v1/sess", b"POST /v1/sessions HTTP/1.1\r\nContent-Length: 10\r\n\r\n{"])
def test_half_a_request_is_not_waited_for(shared: Instance, half: bytes) -> None:
    shared.start()
    with _connect(shared) as sock:
        sock.settimeout(REQUEST_S + 10)
        sock.sendall(half)
        began = time.monotonic()
        answer = sock.recv(4096)

        assert b" 408 " in answer
        assert time.monotonic() - began > REQUEST_S - 1


def test_garbage_fills_no_log(vigil: Instance) -> None:
    vigil.start()
    for _ in range(2000):
        with _connect(vigil) as sock:
            sock.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            assert b" 400 " in sock.recv(4096)

    assert _bytes_of_logs(vigil) < 100_000


def _connect(vigil: Instance) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(20)
    sock.connect(str(vigil.home.api_socket))
    return sock


def _bytes_of_logs(vigil: Instance) -> int:
    return sum(file.stat().st_size for file in vigil.home.log.iterdir())


def _resident_kb(vigil: Instance) -> int:
    with open(f"/proc/{vigil.daemon_pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
