"""Strays: processes and tmux servers that carry this instance's mark, of whatever launch.

Two homes are two instances: a process is ours only if its environment names our spool beside the launch. Reads only."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from vigil.core.model.launch import ProcessId
from vigil.kernel.process import TICKS_A_SECOND, read_start_ticks
from vigil.kernel.processes import SESSION, SPOOL, read_environ, value_of

SUFFIX = ".tmux"
CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Marked:
    """One process of ours, and what its environment says."""

    process: ProcessId
    launch_id: str
    session: str


def read_marked(seen: Collection[tuple[ProcessId, str | None]], known: Collection[str], spool: str) -> list[Marked]:
    """Return the seen processes that are this instance's and of no known launch."""
    found = []
    for process, launch_id in seen:
        if launch_id is None or launch_id in known:
            continue
        environ = _read_environment(process)
        if value_of(SPOOL, environ) == os.fsencode(spool):
            session = value_of(SESSION, environ) or b""
            found.append(Marked(process, launch_id, session.decode("utf-8", "replace")))
    return found


def _read_environment(process: ProcessId) -> bytes:
    try:
        environ = read_environ(process.pid)
        return environ if read_start_ticks(process.pid) == process.start_ticks else b""
    except OSError:
        return b""


def read_servers(run: Path, known: Collection[str], boot: str) -> dict[str, ProcessId]:
    """Return the listeners on sockets of no known launch, by launch."""
    found = {}
    for name in sorted(os.listdir(run)):
        launch_id = name.removesuffix(SUFFIX)
        if name.endswith(SUFFIX) and launch_id not in known:
            server = read_listener(str(run / name), boot)
            if server is not None:
                found[launch_id] = server
    return found


def read_listener(path: str, boot: str) -> ProcessId | None:
    """Return a socket's listener; None if there is none, or it cannot be told."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect(path)
            pid = CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[0]
    except OSError:
        return None
    ticks = read_start_ticks(pid)
    return None if ticks is None else ProcessId(pid, ticks, boot)


def age_s(process: ProcessId) -> float:
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - process.start_ticks / TICKS_A_SECOND)
