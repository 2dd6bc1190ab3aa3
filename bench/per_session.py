"""Cost of a session: the memory of its tmux server and of the shim's two `sh`; the agent itself is not counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.harness import percentile
from bench.ours import Vigil
from bench.peers.contract import System
from bench.readings import read_pss_mb


def measure(systems: Sequence[System], count: int, quick: bool) -> list[dict[str, Any]]:  # noqa: ARG001
    """Read the share of memory that each session's own processes have."""
    rows = []
    for system in systems:
        if isinstance(system, Vigil) and (surroundings := system.surroundings()):
            servers = [read_pss_mb(session[0]) for session in surroundings]
            shims = [sum(map(read_pss_mb, session[1:])) for session in surroundings]
            both = [server + shim for server, shim in zip(servers, shims, strict=True)]
            rows.append(
                {
                    "system": system.name,
                    "count": count,
                    "server_mb": percentile(servers, 0.5),
                    "shim_mb": percentile(shims, 0.5),
                    "both_mb": percentile(both, 0.5),
                    "max_mb": max(both),
                    "processes": percentile([len(session) for session in surroundings], 0.5),
                }
            )
    return rows
