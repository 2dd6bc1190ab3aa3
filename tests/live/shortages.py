"""Shortages for one instance: descriptors by its limits, processes by a cgroup, room by a small disk of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import Instance, wait_for

PIDS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # of version 1, and of version 2


@contextlib.contextmanager
def without_descriptors(pid: int) -> Iterator[None]:
    """Let a process open nothing more for the length of a block: its limit is its next free number above all others."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    top = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (top, before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


class Crowd:
    """A cgroup in which no more processes and threads can be made, once it is `full`."""

    def __init__(self, folder: Path, pids: list[int]) -> None:
        self._folder = folder
        for pid in pids:
            (folder / "cgroup.procs").write_text(str(pid))

    def fill(self) -> None:
        (self._folder / "pids.max").write_text((self._folder / "pids.current").read_text())

    def free(self) -> None:
        (self._folder / "pids.max").write_text("max")


@contextlib.contextmanager
def crowd(*pids: int) -> Iterator[Crowd]:
    """Put processes into a cgroup of their own, as a host whose table of pids or RLIMIT_NPROC is reached."""
    found = next((folder for folder in PIDS if (folder / "cgroup.procs").exists() and _counts(folder)), None)
    if os.getuid() != 0 or found is None:
        pytest.skip("no cgroup can be made that counts processes")
    folder = Path(tempfile.mkdtemp(prefix="vg-", dir=found))
    made = Crowd(folder, list(pids))
    try:
        yield made
    finally:
        made.free()
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (found / "cgroup.procs").write_text(pid)
        wait_for(lambda: _is_removed(folder), 20, "the cgroup to be empty")


def _counts(folder: Path) -> bool:
    if folder == PIDS[0]:
        return True
    try:
        return "pids" in (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _is_removed(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


class SmallDisk:
    """A file system of a few megabytes, which a test can fill."""

    def __init__(self, path: Path) -> None:
        self._ballast = path / "ballast"

    def fill(self) -> None:
        fd = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            while True:
                os.write(fd, bytes(4096))
        except OSError:
            pass
        finally:
            os.close(fd)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(size: str = "24m") -> Iterator[tuple[Instance, SmallDisk]]:
    """Give an instance a home on a small disk of its own."""
    path = Path(tempfile.mkdtemp(prefix="vg-", dir="/tmp"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        path.rmdir()
        pytest.skip("no file system can be mounted here")
    vigil, disk = Instance(path), SmallDisk(path)
    try:
        yield vigil, disk
    finally:
        disk.free()
        try:
            vigil.destroy()
        finally:
            subprocess.run(["umount", "-l", str(path)], check=True)
            path.rmdir()


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
