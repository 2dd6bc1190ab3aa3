"""Detection: from SIGKILL of an agent to the moment a listener can read that it died.

All systems of a group are up at once and take turns, in an order drawn anew each round; each death falls at a random moment.
"""

from __future__ import annotations

import random
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bench.harness import percentile, send, wait_for_calm
from bench.peers.contract import System
from vigil.kernel import process

TOLD_S = 12.0  # twice the longest period; a death that nobody was told of by then counts as never told
SEED = 20
QUICK = 5  # a quick run has so many times fewer kills


def measure(systems: Sequence[System], count: int, quick: bool) -> list[dict[str, Any]]:
    """Kill agents of every system in turn, and return how long each took to tell."""
    chance = random.Random(SEED + count)
    took_ms: defaultdict[str, list[float | None]] = defaultdict(list)
    for system in systems:
        system.subscribe()
    busy = wait_for_calm()
    turns = {system.name: max(1, system.kills // (QUICK if quick else 1)) for system in systems}
    while due := [system for system in systems if len(took_ms[system.name]) < turns[system.name]]:
        chance.shuffle(due)
        for system in due:
            took_ms[system.name].append(time_death(system, chance))
    return [row(system, count, took_ms[system.name], busy) for system in systems]


def time_death(system: System, chance: random.Random) -> float | None:
    """Kill one agent and return after how many ms a listener was told; None if it never was."""
    time.sleep(chance.uniform(0.02, system.phase_s))
    pid = chance.choice(system.victims())
    start_ticks = process.read_start_ticks(pid) or 0
    at_ns = time.monotonic_ns()
    send(pid, start_ticks, signal.SIGKILL)
    try:
        return (system.told_at_ns(pid, TOLD_S) - at_ns) / 1e6
    except TimeoutError:
        return None
    finally:
        system.make_whole()


def row(system: System, count: int, outcomes: list[float | None], busy: float) -> dict[str, Any]:
    """Return one line of the table."""
    took_ms = [took for took in outcomes if took is not None]
    return {
        "system": system.name,
        "label": system.label,
        "count": count,
        "kills": len(outcomes),
        "never_told": len(outcomes) - len(took_ms),
        "p50_ms": percentile(took_ms, 0.5),
        "p99_ms": percentile(took_ms, 0.99),
        "max_ms": max(took_ms),
        "busy_before": busy,
        "all_ms": outcomes,
    }
