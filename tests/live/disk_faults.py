"""A disk that refuses: builds the preloaded library of disk_faults.c, and tells it which calls to fail."""

from __future__ import annotations

import errno
import mmap
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.live.instance import Instance

SOURCE = Path(__file__).with_name("disk_faults.c")
HEAD = struct.Struct("6I")
FOLDER_BYTES = 1000
NEVER = (1 << 32) - 1
OPEN, WRITE, SYNC, RENAME, MAKE = 1, 2, 4, 8, 16  # kinds of calls, as in the library


@cache
def library(folder: Path) -> Path:
    """Build the library once; without a compiler its tests are skipped."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: the disk's faults cannot be built")
    built = folder / "disk_faults.so"
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(built), str(SOURCE), "-ldl"], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"the disk's faults cannot be built: {done.stderr.splitlines()[:1]}")
    return built


class DiskFaults:
    """Calls below an instance's home that fail; all of its processes share the one control file."""

    def __init__(self, vigil: Instance, folder: Path, built: Path) -> None:
        path = folder / "control"
        path.write_bytes(bytes(HEAD.size + FOLDER_BYTES))
        with open(path, "r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)
        place = str(vigil.path).encode()
        self._shared[HEAD.size : HEAD.size + len(place)] = place
        self.lift()
        vigil.env |= {"LD_PRELOAD": str(built), "DISK_FAULTS": str(path)}

    def fail(self, first: int = 1, last: int = NEVER, error: int = errno.ENOSPC, only: int = 0) -> None:
        """Fail the calls from the `first` to the `last` from now on."""
        self._shared[: HEAD.size] = HEAD.pack(0, first, last, error, 0, only)

    def lift(self) -> None:
        """Fail nothing, and count from now on."""
        self.fail(NEVER)

    @property
    def count(self) -> int:
        """How many calls there were since the last order."""
        return int(HEAD.unpack(self._shared[: HEAD.size])[0])

    @property
    def hits(self) -> int:
        """How many of them failed."""
        return int(HEAD.unpack(self._shared[: HEAD.size])[4])
