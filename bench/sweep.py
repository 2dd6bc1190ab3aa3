"""A sweep: what a pass over all sessions costs the daemon, with every server well, and with a tenth of them stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import Any

from bench.harness import send, wait_for_calm, wait_until
from bench.ours import Vigil
from bench.peers.contract import System
from bench.readings import read_cost
from vigil.kernel import process

PASSES = 8
QUICK_PASSES = 3
WITHIN_S = 120.0


def measure(systems: Sequence[System], count: int, quick: bool) -> list[dict[str, Any]]:
    """Read what some passes cost; all that the daemon does meanwhile counts, so that nothing is left out."""
    rows = []
    passes = QUICK_PASSES if quick else PASSES
    for system in systems:
        if not isinstance(system, Vigil):
            continue
        wait_for_calm()
        rows.append(measure_passes(system, count, passes, stopped=0))
        servers = [session["server_pid"] for session in system.client.sessions() if session["server_pid"]]
        tenth = servers[: len(servers) // 10]
        if tenth:
            rows.append(measure_stopped(system, count, passes, tenth))
    return rows


def measure_stopped(system: Vigil, count: int, passes: int, servers: list[int]) -> dict[str, Any]:
    """Stop some servers, measure, and let them go on."""
    ticks = {pid: process.read_start_ticks(pid) or 0 for pid in servers}
    try:
        for pid in servers:
            send(pid, ticks[pid], signal.SIGSTOP)
        return measure_passes(system, count, passes, stopped=len(servers))
    finally:
        for pid in servers:
            send(pid, ticks[pid], signal.SIGCONT)
        wait_until(lambda: all_run(system), WITHIN_S, "all sessions to be well again")


def measure_passes(system: Vigil, count: int, passes: int, stopped: int) -> dict[str, Any]:
    """Read the daemon's CPU time over some passes, and how long the last one took until all who answer were read."""
    first = next_pass(system, system.client.status()["sweep"]["count"])
    before = read_cost([first["pid"]])
    well_ms = []
    status = first
    for _ in range(passes):
        status = next_pass(system, status["sweep"]["count"])
        well_ms.append(status["sweep"]["well_ms"])
    after = read_cost([first["pid"]])
    return {
        "system": system.name,
        "label": f"{system.label}, {stopped} of {count} servers stopped" if stopped else system.label,
        "count": count,
        "stopped": stopped,
        "passes": passes,
        "cpu_ms": (after.cpu_ms - before.cpu_ms) / passes,
        "well_ms": sorted(well_ms)[len(well_ms) // 2],
        "abandoned": status["probes"]["abandoned"],
    }


def next_pass(system: Vigil, count: int) -> dict[str, Any]:
    """Wait for the end of the next pass and return the daemon's status then."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        status = system.client.status()
        if status["sweep"]["count"] > count:
            return status
        time.sleep(3)  # each question costs the daemon a little, which is counted too
    raise RuntimeError(f"{system.label}: no pass within {WITHIN_S:g} s")


def all_run(system: Vigil) -> bool:
    """Say whether every session is shown as running."""
    return {session["state"] for session in system.client.sessions()} == {"running"}
