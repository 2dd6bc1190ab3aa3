"""Files that others may have put there: opened without a wait, read within a bound, removed without following a link.

An agent may put a pipe, a device's link or a folder under any name of its launch and of the spool. Standard library only."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

AT_ONCE = os.O_NONBLOCK | os.O_CLOEXEC  # a pipe without a writer would hold up the opener for ever
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OBJECT_BYTES = 1 << 20
Name = str | os.PathLike[str]


class FileEnd(NamedTuple):
    """The last bytes of a file, its whole size, and when it was written."""

    data: bytes
    size_bytes: int
    at: float


def open_regular(path: Name, flags: int = os.O_RDONLY, dir_fd: int | None = None) -> tuple[int, os.stat_result]:
    """Open a regular file, also by a link or another user's; return its descriptor, and what it is."""
    fd = os.open(path, flags | AT_ONCE, 0o600, dir_fd=dir_fd)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
        os.set_blocking(fd, True)  # an agent may inherit it
    except OSError:
        os.close(fd)
        raise
    return fd, found


def open_theirs(path: Name, flags: int = os.O_RDONLY, dir_fd: int | None = None) -> tuple[int, os.stat_result]:
    """Open a regular file of our user's, by no link; to be written, it must have no second name."""
    fd, found = open_regular(path, flags | os.O_NOFOLLOW, dir_fd)
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    if found.st_uid != os.geteuid() or (writes and found.st_nlink > 1):
        os.close(fd)
        raise OSError(errno.EPERM, "it is not only ours", os.fspath(path))
    return fd, found


@contextmanager
def theirs(path: Name, flags: int = os.O_RDONLY, dir_fd: int | None = None) -> Iterator[tuple[int, os.stat_result]]:
    """Hold open what `open_theirs` opens."""
    fd, found = open_theirs(path, flags, dir_fd)
    try:
        yield fd, found
    finally:
        os.close(fd)


@contextmanager
def opened_folder(above: Name, name: str) -> Iterator[int]:
    """Hold a folder open: no link leads out of the one above it, and it cannot be moved from under relative names."""
    outer = os.open(above, FOLDER)
    try:
        inner = os.open(name, FOLDER, dir_fd=outer)
        try:
            yield inner
        finally:
            os.close(inner)
    finally:
        os.close(outer)


def read_start(path: Name, most_bytes: int) -> bytes:
    """Return the beginning of a file; OSError if it is unreadable."""
    with theirs(path) as (fd, found):
        return os.pread(fd, min(most_bytes, found.st_size), 0)


def read_end(path: Name, most_bytes: int) -> FileEnd:
    """Return the end of a file; OSError if it is unreadable."""
    with theirs(path) as (fd, found):
        data = os.pread(fd, min(most_bytes, found.st_size), max(0, found.st_size - most_bytes))
    return FileEnd(data, found.st_size, found.st_mtime)


def read_text(path: Name, most_bytes: int) -> str:
    """Return a text that a user named, by a link too; ValueError for one that is too long or not UTF-8."""
    fd, _ = open_regular(path)
    with open(fd, "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"it is larger than {most_bytes >> 20} MiB")
    return data.decode()


def read_object(path: Name, most_bytes: int = OBJECT_BYTES) -> dict[str, Any]:
    """Return a JSON object; OSError if the file is unreadable, ValueError if it holds no object."""
    end = read_end(path, most_bytes)
    if end.size_bytes > most_bytes:
        raise ValueError(f"it is larger than {most_bytes >> 10} KiB")
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


def remove_tree(path: Name, dir_fd: int | None = None) -> bool:
    """Remove whatever has this name, however deep, and nothing that a link leads to; say whether it is gone.

    Folders inside are first moved up: so neither their depth nor a swap in between leads anywhere else."""
    try:
        os.unlink(path, dir_fd=dir_fd)
    except FileNotFoundError:
        return True
    except OSError:
        try:
            _empty(path, dir_fd)
            os.rmdir(path, dir_fd=dir_fd)
        except OSError:
            return False
    return True


def _empty(path: Name, dir_fd: int | None) -> None:
    top = os.open(path, FOLDER, dir_fd=dir_fd)
    try:
        folders = _unlink_files(top, top)
        while folders:
            name = folders.pop()
            inner = os.open(name, FOLDER, dir_fd=top)
            try:
                folders += _unlink_files(inner, top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _unlink_files(folder: int, top: int) -> list[str]:
    """Unlink what is no folder; return the folders, which have new names in `top` then."""
    moved = []
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.EPERM):
                raise
            moved.append(os.urandom(12).hex())
            os.rename(name, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
    return moved
