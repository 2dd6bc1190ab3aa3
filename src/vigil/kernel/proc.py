"""The files of /proc: where they are, and how one is read. Standard library only, because the keeper uses it.

Raw reads: psutil takes 3 times as long for one agent with its sockets, 570 times for a pass (docs/performance.md)."""

from __future__ import annotations

import os

PROC = "/proc"  # tests have others
FLAGS = os.O_RDONLY | os.O_CLOEXEC


def folder_of(pid: int | str, proc: str = PROC, thread: int = 0) -> str:
    """Return the folder of a process, or of one of its threads."""
    return f"{proc}/{pid}/task/{thread}" if thread else f"{proc}/{pid}"


def read_file(path: str, most_bytes: int, dir_fd: int | None = None) -> bytes:
    """Read the beginning of a file; OSError if it cannot."""
    fd = os.open(path, FLAGS, dir_fd=dir_fd)  # a third cheaper than `open`: a sweep does little else
    try:
        return os.read(fd, most_bytes)
    finally:
        os.close(fd)
