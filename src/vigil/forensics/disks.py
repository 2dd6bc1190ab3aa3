"""Disks: how much is free where agents and Vigil write; a disk that hangs delays no bundle."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vigil.hands import Hands, Hangs
from vigil.kernel.theirs import why_of

DEADLINE_S = 0.5
FULL_BYTES = 1 << 20
FULL_SHARE = 0.01

_HANDS = Hands("disks")  # one that hangs is not asked again, and keeps nobody from ending

Statvfs = Callable[[Path], os.statvfs_result]


def read_disks(
    paths: Iterable[Path], statvfs: Statvfs = os.statvfs, deadline_s: float = DEADLINE_S
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what is free below each path, and a line for each path that gave no answer."""
    paths = list(dict.fromkeys(paths))
    answers: dict[Path, dict[str, Any] | str] = {}

    def ask() -> None:
        for path in paths:
            answers[path] = _ask_one(path, statvfs)

    with contextlib.suppress(Hangs):
        _HANDS.call(ask, deadline_s)
    disks, unknown = [], []
    for path in paths:
        answer = answers.get(path, f"its disk has not answered in {deadline_s:g} s")
        if isinstance(answer, str):
            unknown.append(f"disk {path}: {answer}")
        else:
            disks.append(answer)
    return disks, unknown


def _ask_one(path: Path, statvfs: Statvfs) -> dict[str, Any] | str:
    try:
        found = statvfs(path)
    except (OSError, ValueError) as error:
        return why_of(error)
    free_bytes, total_bytes = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    return {
        "path": str(path),
        "free_bytes": free_bytes,
        "total_bytes": total_bytes,
        "free_inodes": found.f_favail,
        "total_inodes": found.f_files,
        "full": is_full(free_bytes, total_bytes, found.f_favail, found.f_files),
    }


def is_full(free_bytes: int, total_bytes: int, free_inodes: int, total_inodes: int) -> bool:
    """Say whether writes there fail now or soon; a disk without inode counts never lacks them."""
    if total_bytes > 0 and (free_bytes < FULL_BYTES or free_bytes < FULL_SHARE * total_bytes):
        return True
    return total_inodes > 0 and free_inodes < FULL_SHARE * total_inodes
