"""Strays: processes and tmux servers that carry this instance's mark, of whatever launch.

Two homes are two instances: a process is ours only if its environment names our spool beside the launch. Reads only."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from vigil.core.model.launch import Launch, ProcessId
from vigil.kernel.process import TICKS_A_SECOND, read_start_ticks
from vigil.kernel.processes import SESSION, SPOOL, read_environ, value_of
from vigil.kernel.trust import Untrusted, check_server
from vigil.observe.survivors import SeenProcess

SUFFIX = ".tmux"


@dataclass(frozen=True, slots=True)
class Marked:
    """One process of ours, and what its environment says."""

    process: ProcessId
    session: str


def read_marked(seen: Collection[SeenProcess], known: Collection[str], spool: str) -> dict[str, list[Marked]]:
    """Return the seen processes that are this instance's and of no known launch, by launch."""
    found: dict[str, list[Marked]] = {}
    for one in seen:
        if (launch_id := one.launch_id) is None or launch_id in known:
            continue
        if one.inherited:
            found.setdefault(launch_id, []).append(Marked(one.process, ""))
            continue
        environ = _read_environment(one.process)
        if value_of(SPOOL, environ) == os.fsencode(spool):
            session = value_of(SESSION, environ) or b""
            found.setdefault(launch_id, []).append(Marked(one.process, session.decode("utf-8", "replace")))
    return found


def left_to(keeper: int | None, seen: Collection[SeenProcess], launches: Iterable[Launch]) -> list[ProcessId]:
    """Return what agents left to the keeper without any sign of their launch, and what descends from that."""
    known = {one for launch in launches for one in (launch.process, launch.root, launch.server, launch.found)}
    sids = {one.pid for one in known if one is not None}
    below, parents = [], {keeper}
    for one in sorted(seen, key=lambda one: (one.process.start_ticks, one.process.pid)):  # a parent is older
        if one.ppid in parents and one.launch_id is None and one.process not in known and one.sid not in sids:
            below.append(one.process)
            parents.add(one.process.pid)
    return below if keeper is not None else []


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
    """Return a socket's listener of our user; None if there is none, or it cannot be told."""
    try:
        pid = check_server(path)
    except (OSError, Untrusted):
        return None
    ticks = read_start_ticks(pid)
    return None if ticks is None else ProcessId(pid, ticks, boot)


def age_s(process: ProcessId) -> float:
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - process.start_ticks / TICKS_A_SECOND)
