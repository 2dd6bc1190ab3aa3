"""The end of a growing file: its last lines, and a bound on the disk that its head takes.

Punching a hole releases the head: offsets stay valid, and the writer, who appends, notices nothing.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from vigil.kernel.theirs import theirs

BLOCK = 4096
TAIL_BYTES = 16 << 20  # the most we read to find the last lines
KEPT_BYTES = 8 << 20
FALLOC_KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02


def read_last_lines(path: Path, lines: int) -> bytes:
    """Return the last lines of a file, at most TAIL_BYTES; an unfinished last line counts."""
    try:
        with theirs(path) as (fd, found):
            at = size = found.st_size
            data = b""
            while at > 0 and data.count(b"\n", 0, -1) < lines and size - at < TAIL_BYTES:
                step = min(max(64 << 10, size - at), at)
                at -= step
                data = os.pread(fd, step, at) + data
    except OSError:
        return b""  # it is gone, or no file of the agent's
    if at == 0 or size - at >= TAIL_BYTES:
        data = data.lstrip(b"\0")  # a released head reads as zeros
    kept = data.splitlines(keepends=True)[-lines:] if lines > 0 else []
    return b"".join(kept)


def release_head(path: Path | str, kept_bytes: int = KEPT_BYTES) -> int:
    """Release all but the last bytes once twice as many are on disk; return how many."""
    try:
        with theirs(path, os.O_RDWR) as (fd, found):
            used = found.st_blocks * 512
            end = (found.st_size - kept_bytes) // BLOCK * BLOCK
            if used <= 2 * kept_bytes or end <= 0:
                return 0
            _punch(fd, end)
            return max(0, used - os.fstat(fd).st_blocks * 512)
    except FileNotFoundError:
        return 0


def _punch(fd: int, end: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, FALLOC_KEEP_SIZE_PUNCH_HOLE, ctypes.c_int64(0), ctypes.c_int64(end)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
