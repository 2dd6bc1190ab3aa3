"""Durable files: what `record_` wrote is on disk when it returns, whole or not at all. Standard library only."""

from __future__ import annotations

import errno
import json
import os
from typing import Any


def record_json(path: str, value: object, mode: int = 0o600) -> None:
    """Write a value so that a crash leaves the old file or the new one, never half of either."""
    _replace(path, json.dumps(value).encode() + b"\n", mode, sync=True)
    folder_fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def write_whole(path: str, data: bytes) -> None:
    """Write a file whole or not at all, without a sync: a host that goes down may lose it."""
    _replace(path, data, 0o600, sync=False)


def _replace(path: str, data: bytes, mode: int, sync: bool) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        if os.write(fd, data) != len(data):  # the disk filled up in the middle
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if sync:
            os.fsync(fd)
    except OSError:
        os.close(fd)
        os.unlink(temporary)
        raise
    os.close(fd)
    os.rename(temporary, path)


def read_json(path: str) -> dict[str, Any] | None:
    """Read a record; None if there is none, or none that is whole."""
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
