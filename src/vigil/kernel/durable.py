"""Durable files: what `record_` wrote is on disk when it returns, whole or not at all. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from typing import Any

from vigil.kernel.shortage import RESERVE
from vigil.kernel.theirs import FOLDER, read_object

RECORD_BYTES = 4 << 20  # an order holds an agent's whole environment


def record_json(path: str, value: object, mode: int = 0o600) -> None:
    """Write a value so that a crash leaves the old file or the new one, never half of either; by no link to its folder."""
    RESERVE.call(_replace, path, json.dumps(value).encode() + b"\n", mode, sync=True)


def write_whole(path: str, data: bytes, at: float | None = None) -> None:
    """Write a file whole or not at all, of this moment if one is given; a host that goes down may lose it."""
    _replace(path, data, 0o600, sync=False, at=at)


def _replace(path: str, data: bytes, mode: int, sync: bool, at: float | None = None) -> None:
    above, name = os.path.split(path)
    folder = os.open(above, FOLDER)
    try:
        temporary = f"{name}.{os.urandom(8).hex()}.tmp"  # an agent cannot put a pipe or a link there first
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
        try:
            if os.write(fd, data) != len(data):  # the disk filled up in the middle
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            if at is not None:
                os.utime(fd, (at, at))
            if sync:
                os.fsync(fd)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(fd)
        if sync:
            os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path: str, most_bytes: int = RECORD_BYTES) -> dict[str, Any] | None:
    """Read a record; None if there is none, or none that is whole."""
    try:
        return RESERVE.call(read_object, path, most_bytes)
    except (OSError, ValueError):
        return None
