"""What /proc says a process costs: CPU time, wake-ups, memory. Reads only."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from vigil.kernel import process

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """What some processes used since they began, and hold now."""

    cpu_ms: float
    wakeups: int
    rss_mb: float
    pss_mb: float
    processes: int


def read_cost(pids: list[int]) -> Cost:
    """Read what these processes cost together; one that ended meanwhile counts nothing."""
    cpu_ns = wakeups = rss_kb = pss_kb = there = 0
    for pid in pids:
        try:
            memory = read_fields(f"/proc/{pid}/smaps_rollup", ("Rss", "Pss"))
            for task in os.listdir(f"/proc/{pid}/task"):
                cpu_ns += read_cpu_ns(f"/proc/{pid}/task/{task}")
                wakeups += read_fields(f"/proc/{pid}/task/{task}/status", ("voluntary_ctxt_switches",))[0]
        except (OSError, IndexError):
            continue
        rss_kb, pss_kb, there = rss_kb + memory[0], pss_kb + memory[1], there + 1
    return Cost(cpu_ns / 1e6, wakeups, rss_kb / 1024, pss_kb / 1024, there)


def read_pss_mb(pid: int) -> float:
    """Read the memory of one process, what it shares counted by share."""
    return read_fields(f"/proc/{pid}/smaps_rollup", ("Pss",))[0] / 1024


def read_fields(path: str, names: tuple[str, ...]) -> list[int]:
    """Read the numbers after these names, in the order of the file."""
    with open(path, encoding="ascii", errors="replace") as file:
        return [int(words.split()[0]) for name, _, words in (line.partition(":") for line in file) if name in names]


def read_cpu_ns(task: str) -> int:
    """Read a thread's time on a CPU: from schedstat in ns, or where the kernel has none from stat in ticks."""
    try:
        with open(f"{task}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])
    except FileNotFoundError:
        with open(f"{task}/stat", encoding="ascii", errors="replace") as file:
            field = file.read().rpartition(")")[2].split()
        return int((int(field[11]) + int(field[12])) * TICK_S * 1e9)


def read_children(pid: int) -> list[int]:
    """Read the living children of a process; a zombie is none."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += map(int, file.read().split())
    return [child for child in found if (stat := process.read_stat(child)) is not None and stat.state not in "ZX"]


def read_age_s(pid: int) -> float:
    """Read how long a process has been there; 0 if it is not."""
    stat = process.read_stat(pid)
    return 0.0 if stat is None else time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks * TICK_S


def read_busy_s() -> float:
    """Read how many CPU seconds this machine has been busy since it booted, for anybody."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) * TICK_S
