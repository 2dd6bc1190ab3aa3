"""How much processor time processes have used, with those of their children that ended; read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable

from vigil.core.model.launch import ProcessId

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def read_used_s(processes: Iterable[ProcessId]) -> dict[ProcessId, float]:
    """Read the seconds of processor time of each; what is gone, or may not be read, is left out."""
    return {process: used for process in processes if (used := _read_one(process)) is not None}


def cores(before: dict[ProcessId, float], after: dict[ProcessId, float], window_s: float) -> float | None:
    """Return how many cores processes used between two readings; None where nothing can be compared.

    What began in between counts whole; what ended in between is in the time of whoever waited for it.
    """
    if window_s <= 0 or not after:
        return None
    used_s = sum(used - before.get(process, 0.0) for process, used in after.items())
    return max(0.0, used_s) / window_s


def _read_one(process: ProcessId) -> float | None:
    try:
        with open(f"/proc/{process.pid}/stat", "rb", buffering=0) as file:
            field = file.read(1024).rpartition(b")")[2].split()
        if int(field[19]) != process.start_ticks:
            return None
        return sum(map(int, field[11:15])) / TICKS_A_SECOND
    except (OSError, ValueError, IndexError):
        return None
