"""Asking daemon and keeper how they are, within a deadline; changes nothing."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from vigil.client import Client
from vigil.errors import VigilError
from vigil.home import Home
from vigil.keeper import protocol

ANSWER_S = 5.0

T = TypeVar("T")


class NoAnswer(Exception):
    """It is there, but does not answer."""


def listens(path: Path) -> bool:
    """Say whether a process listens on a socket; the kernel itself refuses if none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_S)
        try:
            sock.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # full or slow: a process is there
        return True


def ask_daemon(home: Home) -> dict[str, Any] | None:
    """Return the daemon's status, None if none listens; NoAnswer if it is silent too long."""
    if not listens(home.api_socket):
        return None
    return _within(ANSWER_S, Client(home).status)


def ping_keeper(home: Home) -> dict[str, Any] | None:
    """Return the keeper's answer to a ping, None if none listens; NoAnswer if it does not answer in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_S)
        lines = protocol.Lines()
        try:
            sock.connect(str(home.keeper_socket))
            sock.sendall(protocol.encode({"id": 1, "do": "ping"}))
            while data := sock.recv(65536):
                for message in lines.feed(data):
                    if message.get("re") == 1:
                        return message
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except TimeoutError:
            raise NoAnswer(f"no answer in {ANSWER_S:g} s") from None
        except (OSError, ValueError) as error:
            raise NoAnswer(str(error)) from error
    raise NoAnswer("it hung up")


def lock_holder(lock: Path) -> int | None:
    """Return the pid that holds a lock, from /proc: taking it could stop a starting daemon."""
    try:
        pid, inode = int(lock.read_text()), lock.stat().st_ino
        held = Path("/proc/locks").read_text()
    except (OSError, ValueError):
        return None
    for line in held.splitlines():
        words = line.split()  # 1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF
        if len(words) > 5 and words[1] == "FLOCK" and words[4] == str(pid) and words[5].rpartition(":")[2] == str(inode):
            return pid
    return None


def listener_of(path: Path) -> int | None:
    """Return the pid that listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_S)
        try:
            sock.connect(str(path))
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return None
    return int.from_bytes(credentials[:4], "little", signed=True)


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """Return an answer; NoAnswer if it takes too long or fails."""
    answers: queue.SimpleQueue[T | VigilError] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(ask())
        except VigilError as error:
            answers.put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise NoAnswer(f"no answer in {seconds:g} s") from None
    if isinstance(answer, VigilError):
        raise NoAnswer(str(answer))
    return answer
