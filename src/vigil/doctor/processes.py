"""Asking daemon and keeper how they are, within a deadline; changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from vigil.client import Client
from vigil.client.living import LOOK_S, SOCKET_S, DeafDaemon, LivingDaemon, wait_for_answer
from vigil.errors import Unreachable, VigilError
from vigil.hands import Hands, Hangs
from vigil.home import Home
from vigil.keeper import wire
from vigil.keeper.protocol import PingAnswer, PingRequest
from vigil.kernel.files import holds_lock
from vigil.kernel.trust import Untrusted, connect_own, read_peer

ANSWER_S = 5.0

T = TypeVar("T")


class NoAnswer(Exception):
    """It is there, but does not answer; `deaf` if it cannot be asked."""

    deaf: LivingDaemon | None = None


def listens(path: Path) -> bool:
    """Say whether a process listens on a socket; the kernel itself refuses if none does."""
    try:
        connect_own(str(path), ANSWER_S).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except (OSError, Untrusted):
        return True  # full, slow or a stranger's: a process is there
    return True


def ask_daemon(home: Home) -> dict[str, Any] | None:
    """Return the daemon's status, None if none lives; NoAnswer if it is silent too long, or stays deaf."""
    try:
        if not wait_for_answer(home):
            return None
    except Unreachable as error:
        silence = NoAnswer(str(error))
        silence.deaf = error.daemon if isinstance(error, DeafDaemon) else None
        raise silence from None
    return _within(ANSWER_S, Client(home).status)


def ping_keeper(home: Home) -> PingAnswer | None:
    """Return the keeper's answer to a ping, None if none listens; NoAnswer if it does not answer in time."""
    lines = wire.Lines()
    try:
        with connect_own(str(home.keeper_socket), ANSWER_S) as sock:
            sock.sendall(wire.encode_request(1, PingRequest()))
            while data := sock.recv(65536):
                for message in map(wire.decode, lines.feed(data)):
                    if wire.number_in(message, "re") != 1:
                        continue
                    if (refusal := wire.read_refusal(message)) is not None:
                        raise NoAnswer(refusal.why)
                    return wire.read(PingAnswer, message)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except TimeoutError:
        raise NoAnswer(f"no answer in {ANSWER_S:g} s") from None
    except (OSError, ValueError, Untrusted) as error:
        raise NoAnswer(str(error)) from error
    raise NoAnswer("it hung up")


def wait_for_keeper(home: Home) -> PingAnswer | None:
    """Return as `ping_keeper`, after a wait for a living keeper that makes its lost socket anew."""
    deadline = time.monotonic() + SOCKET_S
    while (answer := ping_keeper(home)) is None and lock_holder(home.lock("keeper")) is not None:
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_S)
    return answer


def lock_holder(lock: Path) -> int | None:
    """Return the pid that holds a lock, as the kernel says: to try it could keep a daemon that starts now from it."""
    try:
        pid, inode = int(lock.read_text()), lock.stat().st_ino
        return pid if holds_lock(pid, inode) else None
    except (OSError, ValueError):
        return None


def listener_of(path: Path) -> int | None:
    """Return the pid that listens on a socket."""
    try:
        with connect_own(str(path), ANSWER_S) as sock:
            return read_peer(sock)[0]
    except (OSError, Untrusted):
        return None


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """Return an answer; NoAnswer if it takes too long or fails."""
    try:
        return Hands("doctor").call(ask, seconds)
    except (Hangs, VigilError) as error:
        raise NoAnswer(str(error)) from None
