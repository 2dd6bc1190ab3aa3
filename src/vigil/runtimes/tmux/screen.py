"""A pane's screen, read from its tmux server in its client's protocol: without a process, without attaching.

The messages are protocol version 8, which tmux 2.2 to 3.7 speak; they carry a pane's text since 3.1. We send exact bytes:
a server before 3.7 ends itself over a message of the wrong size. A `tmux` command would cost ten times as much.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct

from vigil.kernel.trust import read_peer

DEADLINE_S = 1.0
PROTOCOL = 8
HEADER = struct.Struct("<IIIi")  # type, whole length, protocol, pid; half of the length was flags before 3.6, always 0 here
LARGEST_MESSAGE = 16384
LARGEST_SCREEN = 1 << 22
CHUNK_BYTES = 1 << 16
IDENTIFY_TERM = 101
IDENTIFY_TTYNAME = 102
IDENTIFY_DONE = 106
IDENTIFY_CLIENTPID = 107
IDENTIFY_CWD = 108
COMMAND = 200
EXIT = 203
SHUTDOWN = 210
WRITE_OPEN = 303
WRITE = 304
WRITE_READY = 305
STDOUT = 1
PANE = re.compile(r"%[0-9]+")


class NotSpoken(Exception):
    """The server speaks another protocol."""


class ScreenRefused(Exception):
    """The server understood, but gives no screen."""


def capture_words(pane: str, lines: int) -> tuple[str, ...]:
    """Return the command that prints a pane's screen and this many lines above it."""
    return ("capture-pane", "-p", "-J", "-S", f"-{lines}", "-t", pane)


async def capture(path: str, pane: str, lines: int, pid: int | None = None) -> bytes:
    """Return what a pane of the server with this pid shows; raise NotSpoken, ScreenRefused, OSError or TimeoutError."""
    talk = Talk(pane, lines)
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
        sock.connect(path)  # connects at once: a full backlog is an OSError
        if pid is not None and read_peer(sock)[0] != pid:
            raise OSError("another process listens on its socket")
        _send(sock, talk.question)
        async with asyncio.timeout(DEADLINE_S):
            while not talk.over:
                _send(sock, talk.hear(await loop.sock_recv(sock, CHUNK_BYTES)))
    return bytes(talk.text)


def _send(sock: socket.socket, data: bytes) -> None:
    """Send at once: half a message would leave the server waiting for the rest."""
    if data and sock.send(data) != len(data):
        raise OSError("the server takes no more")


class Talk:
    """One capture as messages, without I/O: the question, what we hear, and what we answer."""

    def __init__(self, pane: str, lines: int) -> None:
        assert PANE.fullmatch(pane), pane
        words = capture_words(pane, lines)
        # Without flags and terminal, such a client can never be attached. It needs a terminal name all the same: an empty one.
        self.question = b"".join(
            (
                _message(IDENTIFY_TERM, b"dumb\0"),
                _message(IDENTIFY_TTYNAME, b"\0"),
                _message(IDENTIFY_CWD, b"/\0"),
                _message(IDENTIFY_CLIENTPID, struct.pack("<i", os.getpid())),
                _message(IDENTIFY_DONE),
                _message(COMMAND, struct.pack("<i", len(words)) + b"".join(word.encode() + b"\0" for word in words)),
            )
        )
        self.text = bytearray()
        self.over = False
        self._open = False
        self._heard = b""

    def hear(self, data: bytes) -> bytes:
        """Take in what the server sent and return our answer; NotSpoken if it hangs up early."""
        if not data:
            raise NotSpoken("it hung up")
        self._heard += data
        answer = b""
        while not self.over and len(self._heard) >= HEADER.size:
            kind, length, protocol, _ = HEADER.unpack_from(self._heard)
            if protocol != PROTOCOL or not HEADER.size <= length <= LARGEST_MESSAGE:
                raise NotSpoken(f"protocol {protocol}, length {length}")
            if len(self._heard) < length:
                break
            body, self._heard = self._heard[HEADER.size : length], self._heard[length:]
            answer += self._take(kind, body)
        return answer

    def _take(self, kind: int, body: bytes) -> bytes:
        if kind == WRITE_OPEN and len(body) == 12 and not self._open:
            if _integers(body, 2) != (STDOUT, STDOUT):
                raise ScreenRefused("it has an error to tell")
            self._open = True
            return _message(WRITE_READY, struct.pack("<ii", STDOUT, 0))
        if kind == WRITE and self._open and len(body) >= 4 and _integers(body, 1) == (STDOUT,):
            self.text += body[4:]
            if len(self.text) > LARGEST_SCREEN:
                raise ScreenRefused("it has no end")
        elif kind == EXIT and len(body) >= 4:
            if not self._open or _integers(body, 1) != (0,):
                raise ScreenRefused("the command failed")
            self.over = True
        elif kind == SHUTDOWN:
            raise ScreenRefused("it ends")
        else:
            raise NotSpoken(f"message {kind} of {len(body)} bytes")
        return b""


def _message(kind: int, body: bytes = b"") -> bytes:
    return HEADER.pack(kind, HEADER.size + len(body), PROTOCOL, -1) + body


def _integers(body: bytes, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{count}i", body)
