"""The agent below its command: the process of a given name among a launch's own, read from /proc."""

from __future__ import annotations

import os
import re
from collections import deque

from vigil.core.model.launch import ProcessId
from vigil.kernel import process

COMM_BYTES = 15  # the kernel keeps no more of a name
CMDLINE_BYTES = 4096
INTERPRETER = re.compile(rb"(a|ba|da|k|z|fi)?sh|node(js)?|bun|deno|ruby|perl|php|python[0-9.]*")
MOST = 4096  # processes of one launch that are looked through


def find_named(leader: ProcessId, names: tuple[str, ...]) -> ProcessId | None:
    """Find the topmost process of one of these names at or below the leader; None if there is none now."""
    below = deque([leader.pid])
    seen = 0
    while below and seen < MOST:
        pid = below.popleft()
        seen += 1
        ticks = process.read_start_ticks(pid)
        if ticks is None or (pid == leader.pid and ticks != leader.start_ticks):
            continue
        if _is_named(pid, names) and process.is_alive(pid, ticks):
            return ProcessId(pid, ticks, leader.boot)
        below.extend(_read_children(pid))
    return None


def _is_named(pid: int, names: tuple[str, ...]) -> bool:
    """Say whether a process bears one of the names: as its own, as its program's, or as the script its interpreter runs."""
    try:
        with open(f"/proc/{pid}/comm", "rb", buffering=0) as file:
            comm = file.read(64).rstrip(b"\n")
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            program, _, rest = file.read(CMDLINE_BYTES).partition(b"\0")
    except OSError:
        return False
    called = {program, _base(program)}
    if INTERPRETER.fullmatch(_base(program)):
        script = rest.partition(b"\0")[0]
        called |= {script, _base(script)}
    return any(name[:COMM_BYTES] == comm or name in called for name in map(os.fsencode, names))


def _base(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _read_children(pid: int) -> list[int]:
    """Read the children of all threads of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                found += map(int, file.read(65536).split())
    except OSError:
        pass  # it ended meanwhile
    return found
