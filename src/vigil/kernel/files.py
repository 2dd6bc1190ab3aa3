"""Files as the kernel has them: on which file system one lies, who holds its lock, where cores are written."""

from __future__ import annotations

from pathlib import Path

from vigil.kernel.proc import PROC

CORE_PATTERN = Path(PROC, "sys/kernel/core_pattern")


def read_file_system(path: Path) -> str:
    """Read the kind of file system that a path lies on; OSError if it cannot."""
    best, kind = "", ""
    for line in Path(PROC, "self/mounts").read_text("utf-8", "replace").splitlines():
        _, mount, fs, *_ = line.split()
        inside = mount == "/" or path == Path(mount) or Path(mount) in path.parents
        if inside and len(mount) >= len(best):
            best, kind = mount, fs
    return kind


def holds_lock(pid: int, inode: int) -> bool:
    """Say whether a process holds a file's lock (flock); OSError if unreadable."""
    for line in Path(PROC, "locks").read_text().splitlines():
        words = line.split()  # 1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF
        if len(words) > 5 and words[1] == "FLOCK" and words[4] == str(pid) and words[5].rpartition(":")[2] == str(inode):
            return True
    return False


def read_core_pattern(path: Path = CORE_PATTERN) -> str:
    """Read where the kernel writes cores; OSError if it cannot."""
    return path.read_text("utf-8", "replace").strip()
