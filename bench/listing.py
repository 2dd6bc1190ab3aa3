"""Listing: the wall time of the command that shows all agents, from its start to its end."""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bench.harness import percentile, wait_for_calm
from bench.peers.contract import System

RUNS = 20
QUICK_RUNS = 5
COMMAND_S = 60.0


def measure(systems: Sequence[System], count: int, quick: bool) -> list[dict[str, Any]]:
    """Run each system's command in turn, and return how long they took."""
    took_ms: defaultdict[str, list[float]] = defaultdict(list)
    able = [system for system in systems if system.list_command() is not None]
    wait_for_calm()
    for number in range((QUICK_RUNS if quick else RUNS) + 1):
        for system in able:
            took = time_command(system, count)
            if number:  # the first run reads from the disk
                took_ms[system.name].append(took)
    return [
        {
            "system": system.name,
            "label": f"{system.label}: `{' '.join(words_of(system))}`",
            "count": count,
            "runs": len(took_ms[system.name]),
            "p50_ms": percentile(took_ms[system.name], 0.5),
            "max_ms": max(took_ms[system.name]),
        }
        for system in able
    ]


def time_command(system: System, count: int) -> float:
    """Run the command once, see that it shows everything, and return its ms."""
    command = system.list_command()
    assert command is not None
    at = time.monotonic()
    result = subprocess.run(command, env=system.environment(), capture_output=True, timeout=COMMAND_S, check=False)
    took_ms = (time.monotonic() - at) * 1000
    if result.stdout.count(b"agent-") < count:
        raise RuntimeError(
            f"{system.label} does not list its {count} agents: {result.stderr.decode('utf-8', 'replace')[-300:]}"
        )
    return took_ms


def words_of(system: System) -> list[str]:
    """Return the command as a person types it."""
    command = system.list_command()
    assert command is not None
    return [command[0].rpartition("/")[2], command[-1]]
