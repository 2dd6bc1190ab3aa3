"""Exit records: on disk when `record_` returns, whole or not at all, in their launch's folder. Standard library only.

What the disk refuses waits in memory and is written later; whoever is told of it is told that, too."""

from __future__ import annotations

import os
import time
from typing import Any

from vigil.kernel.durable import read_json, record_json
from vigil.kernel.theirs import read_end

EXIT_BYTES = 64 << 10  # the daemon reads it in its loop
ROLES = ("agent", "root", "server")  # as born; `inner` is an agent found below its command later
FILES = {"agent": "exit.json", "inner": "inner-exit.json", "root": "root-exit.json", "server": "server-exit.json"}


UNWRITTEN = 4096
AGAIN_S = 2.0


class Unwritten:
    """Records that the disk did not take, by their paths; a launch's folder that is gone needs none."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, Any]] = {}
        self._why = ""
        self._write_at = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def record(self, path: str, value: dict[str, Any]) -> str:
        """Record a value now, or keep it; return why the disk refused it."""
        self._waiting.pop(path, None)
        try:
            record_json(path, value)
        except OSError as error:
            if os.path.isdir(os.path.dirname(path)) and len(self._waiting) < UNWRITTEN:
                self._waiting[path] = value
                self._write_at = time.monotonic() + AGAIN_S
            self._why = str(error)
            return self._why
        return ""

    def get(self, path: str) -> dict[str, Any] | None:
        """Return a record that waits."""
        return self._waiting.get(path)

    def owed(self) -> list[dict[str, Any]]:
        """Return every record that waits, with the reason: a daemon cannot read them anywhere."""
        return [{**value, "unrecorded": self._why} for value in self._waiting.values()]

    def wait_s(self) -> float | None:
        """Return how long refused records still wait; None if there are none."""
        return max(0.0, self._write_at - time.monotonic()) if self._waiting else None

    def catch_up(self) -> None:
        """Write the records that have waited long enough."""
        if self._waiting and self._write_at <= time.monotonic():
            self.write_again()

    def write_again(self) -> None:
        for path, value in list(self._waiting.items()):
            self.record(path, value)


def record_exit(folder: str, exit_: dict[str, Any]) -> None:
    """Record the end of one process of a launch."""
    record_json(exit_path(folder, exit_["role"]), exit_)


def exit_path(folder: str, role: str) -> str:
    """Return where the end of a launch's process is recorded."""
    return os.path.join(folder, FILES[role])


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
