"""Adoption: the daemon is killed, started anew, and must show every session as it was: same pids, all running."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from bench.harness import percentile, wait_for_calm
from bench.ours import Vigil
from bench.peers.contract import System, tool
from vigil.client.starting import start_daemon

RUNS = 5
QUICK_RUNS = 2
WITHIN_S = 60.0
SETTLE_S = 2.0  # the new daemon's first work is over


def measure(systems: Sequence[System], count: int, quick: bool) -> list[dict[str, Any]]:
    """Kill and start each Vigil's daemon a few times."""
    rows = []
    for system in systems:
        if not isinstance(system, Vigil):
            continue
        system.unsubscribe()
        shown_s, ready_s = [], []
        wait_for_calm()
        for _ in range(QUICK_RUNS if quick else RUNS):
            shown_s.append(time_shown(system))
            time.sleep(SETTLE_S)
            ready_s.append(time_ready(system))
            time.sleep(SETTLE_S)
        rows.append(
            {
                "system": system.name,
                "label": system.label,
                "count": count,
                "runs": len(shown_s),
                "shown_s": percentile(shown_s, 0.5),
                "shown_max_s": max(shown_s),
                "ready_s": percentile(ready_s, 0.5),
                "ready_max_s": max(ready_s),
            }
        )
    return rows


def time_shown(system: Vigil) -> float:
    """Return the seconds from `vigil daemon start` until `vigil ls` shows all sessions running with their pids."""
    system.kill_daemon()
    at = time.monotonic()
    subprocess.run(
        [tool("vigil"), "daemon", "start"], env=system.environment(), capture_output=True, timeout=WITHIN_S, check=True
    )
    while time.monotonic() - at < WITHIN_S:
        command = [tool("vigil"), "ls", "-o", "json"]
        result = subprocess.run(command, env=system.environment(), capture_output=True, timeout=WITHIN_S, check=True)
        if running(json.loads(result.stdout)) == system.pids():
            return time.monotonic() - at
    raise RuntimeError(f"{system.label}: not all sessions were adopted with their pids")


def time_ready(system: Vigil) -> float:
    """Return the seconds from the start of the daemon's process until it says that it is ready: its own part."""
    system.kill_daemon()
    at = time.monotonic()
    start_daemon(system.client.home)
    took_s = time.monotonic() - at
    if running(system.client.sessions()) != system.pids():
        raise RuntimeError(f"{system.label}: not all sessions were adopted with their pids")
    return took_s


def ask(system: Vigil, *words: str) -> bytes:
    """Run one command of the user's and return what it printed."""
    command = [tool("vigil"), *words]
    return subprocess.run(command, env=system.environment(), capture_output=True, timeout=WITHIN_S, check=True).stdout


def running(sessions: list[dict[str, Any]]) -> set[int]:
    """Return the pids of the sessions that are shown as running."""
    return {session["pid"] for session in sessions if session["state"] == "running"}
