"""Pinging tmux servers: many at once, without a process, and nobody is waited for.

A question stays open until it is answered. So a server that hangs is not asked again and again, and the answer to the one open
question, whenever it comes, says that it goes on.
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

    def ask(self, path: str) -> Pong | None:
        """Ask a server, unless a question to it is open; returns what is clear at once, else None."""
        if (question := self._open.get(path)) is not None:
            if question.abandoned or os.path.lexists(path):
                return None
            self.forget(path)  # it was asked by a name that is gone, and its answer would not say so
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError:  # no descriptor is left
            return Pong.FAILED
        try:
            sock.connect(path)
            sock.send(PING)
        except BlockingIOError:  # so many wait to be accepted that there is no room for us
            return self._close(sock, Pong.SILENT)
        except FileNotFoundError:
            return self._close(sock, Pong.NO_SOCKET)
        except ConnectionRefusedError:
            return self._close(sock, Pong.REFUSED if _is_socket(path) else Pong.NO_SOCKET)
        except OSError:
            return self._close(sock, Pong.FAILED)
        self._open[path] = Question(sock, time.monotonic())
        return None

    def answer(self, path: str) -> Pong | None:
        """Return what a server has answered; None if its question is still open."""
        question = self._open.get(path)
        if question is None:  # somebody else who looked at the same time has read it
            answered_at = self._answered.get(path)
            recent = answered_at is not None and time.monotonic() - answered_at < RECENT_S
            return Pong.ANSWERED if recent else self.ask(path)
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
        """Wait for an answer no longer; should it come all the same, it is told."""
        question = self._open.get(path)
        if question is not None and not question.abandoned:
            question.abandoned = True
            self.abandoned += 1
            asyncio.get_running_loop().add_reader(question.sock, self._late, path)

    def forget(self, path: str) -> None:
        """Ask nothing of a server any more."""
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
        """An abandoned server said something: whoever looks now finds it in the open question."""
        question = self._open[path]
        asyncio.get_running_loop().remove_reader(question.sock)
        self._on_late_answer(path)

    @staticmethod
    def _close(sock: socket.socket, pong: Pong) -> Pong:
        with contextlib.suppress(OSError):
            sock.close()
        return pong


def _is_socket(path: str) -> bool:
    """Say whether there is a socket, and not something that was put in its place."""
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
