"""The agent below its command: the process of a given name among a launch's own."""

from __future__ import annotations

import os
import re
from collections import deque

from vigil.core.model.launch import ProcessId
from vigil.kernel.process import Stat, is_alive, read_stat
from vigil.kernel.processes import read_children, read_command

NAME_BYTES = 15  # the kernel keeps no more of a name
INTERPRETER = re.compile(rb"(a|ba|da|k|z|fi)?sh|node(js)?|bun|deno|ruby|perl|php|python[0-9.]*")
MOST = 4096  # of one launch


def find_named(leader: ProcessId, names: tuple[str, ...]) -> ProcessId | None:
    """Find the topmost process of one of these names at or below the leader; None if there is none now."""
    below = deque([leader.pid])
    seen = 0
    while below and seen < MOST:
        pid = below.popleft()
        seen += 1
        stat = read_stat(pid)
        if stat is None or (pid == leader.pid and stat.start_ticks != leader.start_ticks):
            continue
        if _is_named(stat, names) and is_alive(pid, stat.start_ticks):
            return ProcessId(pid, stat.start_ticks, leader.boot)
        try:
            below.extend(read_children(pid, stat.threads))
        except OSError:
            continue  # this kernel does not tell
    return None


def _is_named(stat: Stat, names: tuple[str, ...]) -> bool:
    """Say whether a process bears one of the names: as its own, its program's, or its interpreter's script's."""
    try:
        program, script = [*read_command(stat.pid), b"", b""][:2]
    except OSError:
        return False
    called = {program, _base(program)}
    if INTERPRETER.fullmatch(_base(program)):
        called |= {script, _base(script)}
    return any(_cut(name) == stat.name or name in called for name in map(os.fsencode, names))


def _cut(name: bytes) -> str:
    return name[:NAME_BYTES].decode("utf-8", "replace")


def _base(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]
