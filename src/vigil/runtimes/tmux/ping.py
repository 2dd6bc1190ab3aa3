"""Pinging tmux servers: many at once, without a process, and without waiting.

A question stays open until its answer comes: so we do not pile questions on a server that hangs, and its answer,
whenever it comes, says that it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from vigil.kernel.trust import read_peer

# An unknown message type in protocol version 0: the server answers with its version and hangs up (same on 3.2a to 3.7).
PING = struct.pack("<IHHIi", 999, 16, 0, 0, -1)
ANSWER_BYTES = 16
RECENT_S = 1.0


class Pong(StrEnum):
    """What became of a ping."""

    ANSWERED = "it answered"
    SILENT = "no answer"
    NO_SOCKET = "its socket is gone"
    REFUSED = "it refuses connections"
    HUNG_UP = "it hung up"
    FOREIGN = "another process listens on its socket"
    FAILED = "it cannot be reached"


@dataclass
class Question:
    """One connection that waits for its answer."""

    sock: socket.socket
    asked_at: float
    abandoned: bool = False


class Pinger:
    """All open questions to tmux servers."""

    def __init__(self, on_late_answer: Callable[[str], None]) -> None:
        self._on_late_answer = on_late_answer
        self._open: dict[str, Question] = {}
        self._answered: dict[str, float] = {}  # when each answered last
        self.abandoned = 0

    @property
    def in_flight(self) -> int:
        """How many questions are open."""
        return len(self._open)

    def ask(self, path: str, pid: int | None = None) -> Pong | None:
        """Ask the server that has this pid, unless a question is open; return what is clear at once, else None."""
        if (question := self._open.get(path)) is not None:
            if question.abandoned or os.path.lexists(path):
                return None
            self.forget(path)  # we asked by a name that is gone, and an answer would not show that
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError:  # no descriptor is left
            return Pong.FAILED
        try:
            sock.connect(path)
            if pid is not None and read_peer(sock)[0] != pid:
                return self._close(sock, Pong.FOREIGN)
            sock.send(PING)
        except BlockingIOError:  # its backlog is full
            return self._close(sock, Pong.SILENT)
        except FileNotFoundError:
            return self._close(sock, Pong.NO_SOCKET)
        except ConnectionRefusedError:
            return self._close(sock, Pong.REFUSED if _is_socket(path) else Pong.NO_SOCKET)
        except OSError:
            return self._close(sock, Pong.FAILED)
        self._open[path] = Question(sock, time.monotonic())
        return None

    def answer(self, path: str, pid: int | None = None) -> Pong | None:
        """Return what a server answered; None while its question is open."""
        question = self._open.get(path)
        if question is None:  # another reader took the answer
            answered_at = self._answered.get(path)
            recent = answered_at is not None and time.monotonic() - answered_at < RECENT_S
            return Pong.ANSWERED if recent else self.ask(path, pid)
        try:
            data = question.sock.recv(ANSWER_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self.forget(path)
        if len(data) < ANSWER_BYTES:
            return Pong.HUNG_UP
        self._answered[path] = time.monotonic()
        return Pong.ANSWERED

    def waited_s(self, path: str) -> float:
        """Return how long a question has been open."""
        question = self._open.get(path)
        return 0.0 if question is None else time.monotonic() - question.asked_at

    def abandon(self, path: str) -> None:
        """Stop waiting for an answer; report it should it still come."""
        question = self._open.get(path)
        if question is not None and not question.abandoned:
            question.abandoned = True
            self.abandoned += 1
            asyncio.get_running_loop().add_reader(question.sock, self._late, path)

    def forget(self, path: str) -> None:
        """Drop all that is known of a server."""
        self._answered.pop(path, None)
        question = self._open.pop(path, None)
        if question is not None:
            if question.abandoned:
                asyncio.get_running_loop().remove_reader(question.sock)
            question.sock.close()

    def close(self) -> None:
        """Drop every question."""
        for path in list(self._open):
            self.forget(path)

    def _late(self, path: str) -> None:
        """Report that an abandoned server answers; the answer waits in its open question."""
        question = self._open[path]
        asyncio.get_running_loop().remove_reader(question.sock)
        self._on_late_answer(path)

    @staticmethod
    def _close(sock: socket.socket, pong: Pong) -> Pong:
        with contextlib.suppress(OSError):
            sock.close()
        return pong


def _is_socket(path: str) -> bool:
    """Say whether this path is a socket, and not a file in its place."""
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
