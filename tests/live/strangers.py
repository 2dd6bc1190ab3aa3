"""Strangers: servers that a hostile user or agent would put in Vigil's way, each a process that ends with its test."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import wait_for

OTHER_UID = 64321  # a user of no name: nothing has to be made, and nothing is left
# Binds PATH, as UID if that is not -1, and notes how many bytes each connection sent. KIND says what it answers: `tmux` has
# a client execute PAYLOAD (message 209 of its protocol), `daemon` names PAYLOAD as the command to attach with.
SERVER = """
import json, os, socket, struct, sys, threading, time
kind, path, payload, noted, uid = sys.argv[1:6]
if int(uid) >= 0:
    os.setgid(int(uid)); os.setuid(int(uid))
noted = open(noted, "ab", buffering=0)
if kind == "tmux":
    body = payload.encode() + b"\\0"
    answer = struct.pack("<IHHIi", 209, 16 + len(body), 0, 8, -1) + body
else:
    said = json.dumps({"argv": [payload], "name": "x", "pid": 1, "home": "/", "launch": "x-1", "pane": "%0", "socket": None,
                       "last_death": None, "hold": None, "server": {"pid": os.getpid(), "start_ticks": 1}}).encode()
    answer = b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(said), said)

def serve(sock):
    got = 0
    try:
        sock.settimeout(2)
        got = len(sock.recv(1 << 20))
        if got:
            sock.sendall(answer)
            sock.recv(1)
    except OSError:
        pass
    noted.write(b"%d\\n" % got)
    sock.close()

def bind():
    listener = socket.socket(socket.AF_UNIX)
    name = path + ".fake"
    if os.path.lexists(name): os.unlink(name)
    listener.bind(name); os.chmod(name, 0o777); listener.listen(64)
    os.rename(name, path)
    return listener

def insist(listener):
    inode = os.lstat(path).st_ino
    while len(sys.argv) > 6:
        time.sleep(0.002)
        try: same = os.lstat(path).st_ino == inode
        except OSError: same = False
        if not same:
            threading.Thread(target=accept, args=(listener := bind(),), daemon=True).start()
            inode = os.lstat(path).st_ino

def accept(listener):
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

listener = bind()
print("listens", flush=True)
threading.Thread(target=insist, args=(listener,), daemon=True).start()
accept(listener)
"""


class Stranger:
    """A hostile server, what it was sent, and whether anybody executed its program."""

    def __init__(self, kind: str, path: str, folder: Path, uid: int = -1, insists: bool = False) -> None:
        self.path = path
        self.mark = folder / "executed"
        self.payload = folder / "payload"
        self.payload.write_text(f"#!/bin/sh\necho $PPID >>{self.mark}\n")
        self.payload.chmod(0o755)
        self.noted = folder / "noted"
        self.noted.touch()
        self.noted.chmod(0o666)
        argv = [sys.executable, "-c", SERVER, kind, path, str(self.payload), str(self.noted), str(uid)]
        self.process = subprocess.Popen([*argv, *(["insists"] if insists else [])], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None and self.process.stdout.readline() == "listens\n"

    def executed(self) -> bool:
        return self.mark.exists()

    def sent(self) -> list[int]:
        """How many bytes each connection brought, so far."""
        return [int(line) for line in self.noted.read_text().split()]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        for name in (self.path, f"{self.path}.fake"):
            with contextlib.suppress(OSError):
                os.unlink(name)


@contextlib.contextmanager
def stranger(kind: str, path: str | Path, folder: Path, uid: int = -1, insists: bool = False) -> Iterator[Stranger]:
    """A hostile server for the length of a block."""
    folder.mkdir(exist_ok=True)
    found = Stranger(kind, str(path), folder, uid, insists)
    try:
        yield found
    finally:
        found.close()


def need_root() -> None:
    if os.getuid() != 0:
        pytest.skip("becoming another user needs root")


def obeyed(server: Stranger) -> bool:
    """Say whether an unguarded tmux client executes what a hostile server says: else a test proves nothing."""
    subprocess.run(["tmux", "-N", "-S", server.path, "list-sessions"], capture_output=True, timeout=10)
    wait_for(server.executed, 10, "a plain client to obey")
    server.mark.unlink()
    server.noted.write_text("")
    return True
