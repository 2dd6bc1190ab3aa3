"""Exit records: on disk when `record_` returns, whole or not at all, in their launch's folder. Standard library only."""

from __future__ import annotations

import os
from typing import Any

from vigil.kernel.durable import read_json, record_json
from vigil.kernel.theirs import read_end

EXIT_BYTES = 64 << 10  # the daemon reads it in its loop
ROLES = ("agent", "root", "server")  # as born; `inner` is an agent found below its command later
FILES = {"agent": "exit.json", "inner": "inner-exit.json", "root": "root-exit.json", "server": "server-exit.json"}


def record_exit(folder: str, exit_: dict[str, Any]) -> None:
    """Record the end of one process of a launch."""
    record_json(os.path.join(folder, FILES[exit_["role"]]), exit_)


def read_exits(folder: str) -> dict[str, dict[str, Any]]:
    """Read a launch's recorded ends, by role."""
    found = {role: read_json(os.path.join(folder, name), EXIT_BYTES) for role, name in FILES.items()}
    return {role: record for role, record in found.items() if record is not None}


def read_shim_exit(folder: str) -> tuple[int, float] | None:
    """Read the shim's `$?` and its moment, if whole: it writes by a builtin, as the fork of a rename may fail."""
    path = os.path.join(folder, "shim-exit")
    try:
        text, size_bytes, written_at = read_end(path, 16)
    except OSError:
        return None
    if size_bytes > 16 or not text.endswith(b"\n") or not text.strip().isdigit():
        return None
    return int(text), written_at
