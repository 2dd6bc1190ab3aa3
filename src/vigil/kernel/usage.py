"""Usage: what memory, CPU and bytes a process has used so far, and where it waits.

Reads only; OSError for what is gone or may not be read, ValueError for what this kernel does not count."""

from __future__ import annotations

import re
from typing import NamedTuple

from vigil.kernel.proc import PROC, folder_of, read_file
from vigil.kernel.process import STATUS_BYTES, number_in

IO = re.compile(rb"(rchar|wchar|read_bytes|write_bytes): (\d+)")


class Io(NamedTuple):
    """Bytes so far: all through read and write, and what of it reached a disk."""

    read: int
    written: int
    disk_read: int
    disk_written: int


class Turns(NamedTuple):
    """How a process's first thread got its CPU so far."""

    ran_s: float
    waited_s: float  # ready to run while others ran
    slept: int  # times that it gave its CPU back by itself


class Status(NamedTuple):
    """What is read of /proc/PID/status; None is what the kernel does not say."""

    peak_kb: int | None
    traced_by: int | None  # 0: by no process
    slept: int | None


def read_status(pid: int, proc: str = PROC, thread: int = 0) -> Status:
    """Read a process's peak memory, its tracer, and how often it slept."""
    text = read_file(f"{folder_of(pid, proc, thread)}/status", STATUS_BYTES)
    return Status(number_in(text, b"VmHWM"), number_in(text, b"TracerPid"), number_in(text, b"voluntary_ctxt_switches"))


def read_turns(pid: int, slept: int | None, proc: str = PROC, thread: int = 0) -> Turns:
    """Read how a process got its CPU; `slept` is of its status."""
    ran, waited, _ = map(int, read_file(f"{folder_of(pid, proc, thread)}/schedstat", 128).split())
    if slept is None:
        raise ValueError("the kernel counts none")
    return Turns(ran / 1e9, waited / 1e9, slept)


def read_io(pid: int, proc: str = PROC) -> Io:
    found = {name: int(value) for name, value in IO.findall(read_file(f"{folder_of(pid, proc)}/io", 512))}
    if len(found) < len(Io._fields):
        raise ValueError("the kernel counts none")
    return Io(found[b"rchar"], found[b"wchar"], found[b"read_bytes"], found[b"write_bytes"])


def read_wchan(pid: int, proc: str = PROC, thread: int = 0) -> str:
    """Read the kernel function in which a process sleeps; 0 if it runs or the kernel does not tell."""
    return read_file(f"{folder_of(pid, proc, thread)}/wchan", 128).decode("ascii", "replace").partition(".")[0]
