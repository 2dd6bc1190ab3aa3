"""Idle cost: what a supervisor uses while nothing happens. All systems of a group are read over the same stretch of time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bench.forks import count_forks
from bench.harness import wait_for_calm
from bench.ours import Vigil
from bench.peers.contract import System
from bench.readings import read_cost

IDLE_S = 60.0
SETTLE_S = 0.3  # for each session: a sweep keeps the first screens of 100 new panes, and may come 30 s after the one before
QUICK_S = 30.0  # no less: Vigil's sweep comes once in 15 s


def measure(systems: Sequence[System], count: int, quick: bool) -> list[dict[str, Any]]:
    """Read what every system costs over a minute; Vigil's tmux servers and shims have a line of their own."""
    groups = [(system.name, system.label, system.supervisors()) for system in systems]
    for system in systems:
        if isinstance(system, Vigil) and (surroundings := system.surroundings()):
            pids = [pid for session in surroundings for pid in session]
            groups.append((f"{system.name}-servers", "its tmux servers and shims", pids))
    if not quick and any(isinstance(system, Vigil) for system in systems):
        time.sleep(SETTLE_S * count)  # what follows a start is no idling
    wait_for_calm()
    for_s = QUICK_S if quick else IDLE_S
    before = [read_cost(pids) for _, _, pids in groups]
    forks = count_forks([pid for _, _, pids in groups for pid in pids], for_s)
    after = [read_cost(pids) for _, _, pids in groups]
    return [
        {
            "system": name,
            "label": label,
            "count": count,
            "seconds": for_s,
            "processes": now.processes,
            "cpu_ms_per_minute": (now.cpu_ms - then.cpu_ms) * 60 / for_s,
            "wakeups_per_s": (now.wakeups - then.wakeups) / for_s,
            "rss_mb": now.rss_mb,
            "pss_mb": now.pss_mb,
            "started_per_minute": None if forks is None else sum(forks[pid] for pid in pids) * 60 / for_s,
        }
        for (name, label, pids), then, now in zip(groups, before, after, strict=True)
    ]
