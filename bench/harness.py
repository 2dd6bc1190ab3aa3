"""The ground every measurement stands on: a folder of its own, a mark on all that is started, a calm machine.

All that a run starts inherits its mark, a folder name nobody else has; the end of a run, also by Ctrl-C or a failure, ends
exactly what bears it, and says so if a system had left anything behind.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from bench.readings import read_busy_s
from vigil.kernel import process

MARK = "BENCH_RUN"
AGENT = ("sleep", "3600")  # an agent that does nothing, and ends by itself should even this program be killed
END_S = 30.0
CALM_SHARE = 0.15
CALM_S = 2.0
CALM_WITHIN_S = 30.0


class Run:
    """One run of the benchmark."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vigil-bench-"))
        # Where this is set, no command can keep its compiled modules, and each would compile them anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ[MARK] = str(self.folder)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        left = self.end_marked()
        shutil.rmtree(self.folder, ignore_errors=True)
        if left and kind is None:
            raise RuntimeError(f"{left} processes were left behind and had to be ended")

    def agent_environment(self) -> dict[str, str]:
        """Return what an agent gets: little, and the mark."""
        return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", MARK: str(self.folder)}

    def end_marked(self) -> int:
        """End all that bears our mark, and return how many there were to end."""
        ended: set[int] = set()
        deadline = time.monotonic() + END_S
        while (found := find_marked(str(self.folder))) and time.monotonic() < deadline:
            for pid, start_ticks in found:
                ended.add(pid)
                send(pid, start_ticks, signal.SIGKILL)
            time.sleep(0.05)
        return len(ended)


def find_marked(mark: str) -> list[tuple[int, int]]:
    """Return pid and start time of every living process that bears a mark, but ourselves."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                marked = wanted in file.read().split(b"\0")
        except OSError:
            continue  # it ended, or is somebody else's
        if marked and (stat := process.read_stat(int(name))) is not None and stat.state not in "ZX":
            found.append((int(name), stat.start_ticks))
    return found


def send(pid: int, start_ticks: int, number: signal.Signals) -> None:
    """Signal exactly this process; one that is gone is left alone, and so is a stranger with its pid."""
    pidfd = process.open_pidfd(pid, start_ticks)
    if pidfd is None:
        return
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        pass  # it ended in between
    finally:
        os.close(pidfd)


def wait_until(holds: Callable[[], bool], within_s: float, what: str, every_s: float = 0.02) -> None:
    """Wait until something is true; RuntimeError that says what did not happen in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {within_s:g} s")
        time.sleep(every_s)


def wait_for_calm(within_s: float = CALM_WITHIN_S) -> float:
    """Wait until the machine has little to do, or for so long; return the share of its CPUs that was busy at the end."""
    deadline = time.monotonic() + within_s
    cores = os.cpu_count() or 1
    while True:
        before, at = read_busy_s(), time.monotonic()
        time.sleep(CALM_S)
        busy = (read_busy_s() - before) / (time.monotonic() - at) / cores
        if busy < CALM_SHARE or time.monotonic() > deadline:
            return busy


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that so many are not above (nearest rank)."""
    assert values and 0 < share <= 1
    return sorted(values)[math.ceil(share * len(values)) - 1]
