"""Files that others may have put there: read within a bound, without following links or waiting for pipes."""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OBJECT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The last bytes of a file, its whole size, and when it was written."""

    data: bytes
    size_bytes: int
    at: float


def read_end(path: Path, most_bytes: int) -> FileEnd:
    """Return the end of a file; OSError if it is unreadable."""
    fd = os.open(path, FLAGS)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        data = os.pread(fd, most_bytes, max(0, found.st_size - most_bytes))
    finally:
        os.close(fd)
    return FileEnd(data, found.st_size, found.st_mtime)


def read_object(path: Path) -> dict[str, Any]:
    """Return a JSON object; OSError if the file is unreadable, ValueError if it holds no object."""
    end = read_end(path, OBJECT_BYTES)
    if end.size_bytes > OBJECT_BYTES:
        raise ValueError(f"it is larger than {OBJECT_BYTES >> 20} MiB")
    try:
        value = json.loads(end.data)
    except (ValueError, RecursionError):
        raise ValueError("it is broken") from None
    if not isinstance(value, dict):
        raise ValueError("it is broken")
    return value


def why_of(error: Exception) -> str:
    """Return in words why a file could not be read."""
    if isinstance(error, FileNotFoundError):
        return "it is not there"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)
