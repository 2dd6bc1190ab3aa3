"""What the kernel says of a launch's processes: facts of each, and which one is the agent."""

from __future__ import annotations

import os
import re
from collections import deque
from functools import partial

from vigil.core.model.launch import ProcessId
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.kernel.process import NO_PROCESS, Stat, has_ended, is_alive, is_other_boot, read_start_ticks, read_stat
from vigil.kernel.processes import read_children, read_command

NAME_BYTES = 15  # the kernel keeps no more of a name
INTERPRETER = re.compile(rb"(a|ba|da|k|z|fi)?sh|node(js)?|bun|deno|ruby|perl|php|python[0-9.]*")
MOST = 4096  # of one launch
STATES = {
    **dict.fromkeys("RSDIW", AxisValue.ALIVE),
    **dict.fromkeys("Tt", AxisValue.STOPPED),
    **dict.fromkeys("ZX", AxisValue.DEAD),
}


def read_process(axis: Axis, process: ProcessId, boot: str, now: float) -> Fact:
    """Read what the kernel says of this very process; the core concludes."""
    if is_other_boot(process.boot, boot):
        return Fact(axis, AxisValue.DEAD, "boot-id", now, conclusive=True, why="the host was booted anew")
    try:
        stat = read_stat(process.pid)
    except OSError as error:
        return Fact(axis, AxisValue.FAILED, "procfs", now, why=str(error))
    if stat is None:
        return Fact(axis, AxisValue.DEAD, "procfs", now)  # inferred: without a mounted /proc every process looks like this
    if stat.start_ticks != process.start_ticks:
        return Fact(axis, AxisValue.DEAD, "procfs", now, conclusive=True, why="the pid belongs to another process now")
    if stat.state == "Z" and stat.threads > 1:
        return Fact(axis, AxisValue.ALIVE, "procfs", now, conclusive=True, why="its first thread ended, others live")
    return Fact(axis, STATES.get(stat.state, AxisValue.UNKNOWN), "procfs", now, conclusive=stat.state in STATES)


def ask_kernel(axis: Axis, process: ProcessId, boot: str, now: float) -> Fact:
    """Ask the kernel by a pidfd whether this very process lives; surer and slower than /proc."""
    if is_other_boot(process.boot, boot):
        return Fact(axis, AxisValue.DEAD, "boot-id", now, conclusive=True, why="the host was booted anew")
    fact = partial(Fact, axis, source="pidfd", observed_at=now)
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno in NO_PROCESS:
            return fact(AxisValue.DEAD, conclusive=True)
        return fact(AxisValue.FAILED, why=error.strerror or str(error))
    try:
        ticks = read_start_ticks(process.pid)
        if ticks is None and has_ended(pidfd):  # it, or the one that had its number after it
            return fact(AxisValue.DEAD, conclusive=True)
        if ticks is None:  # the number is in use, and its owner unknown
            return fact(AxisValue.UNKNOWN, why="its start time cannot be read")
        if ticks != process.start_ticks:
            return fact(AxisValue.DEAD, conclusive=True, why="the pid belongs to another process now")
        return fact(AxisValue.DEAD if has_ended(pidfd) else AxisValue.ALIVE, conclusive=True)
    except OSError as error:
        return fact(AxisValue.FAILED, why=error.strerror or str(error))
    finally:
        os.close(pidfd)


def read_group(leader: ProcessId, process: Fact, now: float) -> Fact:
    """Read whether a headless launch's process group has a member left; the agent leads it."""
    if process.value in (AxisValue.ALIVE, AxisValue.STOPPED):
        return Fact(Axis.RUNTIME, AxisValue.ALIVE, "procfs", now, process.conclusive, "the agent leads its group")
    if process.value != AxisValue.DEAD:
        return Fact(Axis.RUNTIME, process.value, process.source, now, why=process.why)
    try:
        os.killpg(leader.pid, 0)  # no signal is sent: it only says whether the group has members
        if read_start_ticks(leader.pid) not in (None, leader.start_ticks):  # its number was free, so its group was empty
            why = "the number belongs to another group now"
            return Fact(Axis.RUNTIME, AxisValue.DEAD, "procfs", now, conclusive=True, why=why)
    except ProcessLookupError:
        return Fact(Axis.RUNTIME, AxisValue.DEAD, "killpg", now, process.conclusive)
    except OSError as error:
        return Fact(Axis.RUNTIME, AxisValue.FAILED, "killpg", now, why=str(error))
    return Fact(Axis.RUNTIME, AxisValue.ALIVE, "killpg", now, why="the agent is gone, its group has members")


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
    return any(name[:NAME_BYTES].decode("utf-8", "replace") == stat.name or name in called for name in map(os.fsencode, names))


def _base(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]
