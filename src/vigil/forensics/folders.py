"""Folders that appear whole or not at all: written aside, then put in place.

It does not sync: a kill of ours loses nothing, and fifty deaths in a second must not wait for the disk."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

BUNDLE_NAME = re.compile(r"d-[A-Za-z0-9][A-Za-z0-9_-]*")
ASIDE_NAME = re.compile(r"d-[A-Za-z0-9][A-Za-z0-9_-]*\.[A-Za-z0-9_]+\.tmp")
AT_FDCWD = -100
RENAME_EXCHANGE = 2


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder (0700, files 0600) over an earlier one; an OSError leaves that as it was."""
    aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        for name, data in files.items():
            fd = os.open(aside / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(data)
        put_in_place(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Swap the names of two folders in one step; False where the disk cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(code, os.strerror(code), str(one))


def put_in_place(aside: Path, folder: Path, exchanged: Callable[[Path, Path], bool] = exchange) -> None:
    """Give a folder its final name; an earlier one takes the temporary name, for the caller to remove."""
    try:
        os.rename(aside, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not exchanged(aside, folder):
            _swap_by_steps(aside, folder)


def _swap_by_steps(aside: Path, folder: Path) -> None:
    """Swap in several steps, where one is not possible: for a moment the name is missing."""
    before = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
    os.rename(folder, before)
    os.rename(aside, folder)
    os.rename(before, aside)
