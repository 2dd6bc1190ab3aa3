"""How much processor time processes have used, with those of their children that ended."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.core.model.launch import ProcessId
from vigil.kernel.process import TICKS_A_SECOND, read_stat


def read_used_s(processes: Iterable[ProcessId]) -> dict[ProcessId, float]:
    """Read the seconds of processor time of each; leaves out what is gone or may not be read."""
    return {process: used for process in processes if (used := _read_one(process)) is not None}


def cores(before: dict[ProcessId, float], after: dict[ProcessId, float], window_s: float) -> float | None:
    """Return the cores used between two readings, None if incomparable; what ended in between is in its waiter's time."""
    if window_s <= 0 or not after:
        return None
    used_s = sum(used - before.get(process, 0.0) for process, used in after.items())
    return max(0.0, used_s) / window_s


def _read_one(process: ProcessId) -> float | None:
    try:
        stat = read_stat(process.pid)
    except OSError:
        return None
    if stat is None or stat.start_ticks != process.start_ticks:
        return None
    return stat.all_ticks / TICKS_A_SECOND
