"""Ends of processes: which of a launch are known, by role, and how each ended as the keeper recorded it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

from vigil.core.model.death import Oom
from vigil.core.model.launch import Launch, ProcessId
from vigil.daemon.base.clock import Clock
from vigil.keeper import records


@dataclass(frozen=True)
class ProcessEnd:
    """How one process ended, and who said so."""

    status: int | None
    source: str
    at: float
    oom: Oom | None = None

    @property
    def killed(self) -> bool:
        """A SIGKILL ended it: somebody's, or the kernel's own."""
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL


def roles_of(launch: Launch) -> dict[str, ProcessId]:
    """Return the processes of a launch that are known, by role."""
    inner = launch.found if launch.found != launch.process else None
    known = {"inner": inner, "agent": launch.process, "root": launch.root, "server": launch.server}
    return {role: process for role, process in known.items() if process is not None}


def agent_role(launch: Launch) -> str:
    """Return the role whose end is the launch's: the agent found below its command, else the command itself."""
    return "inner" if launch.found is not None and launch.found != launch.process else "agent"


def runtime_role(launch: Launch) -> str:
    """Return the role whose end closes the launch's runtime: the pane's root, or the headless command."""
    return "agent" if launch.root is None else "root"


def ends_from_records(folder: str, clock: Clock) -> dict[str, ProcessEnd]:
    """Return what the keeper recorded of a launch while nobody listened."""
    found = records.read_exits(folder)
    return {
        role: ProcessEnd(
            record["status"], f"keeper ({record['source'] or 'unknown'})", moment_of(record, clock), oom_of(record)
        )
        for role, record in found.items()
    }


def oom_of(record: dict[str, Any]) -> Oom | None:
    """Return what the keeper found out about want of memory; nothing where it did not ask."""
    found = record.get("oom")
    if not isinstance(found, dict):
        return None
    return Oom(found.get("named"), found.get("cgroup") or "", found.get("cgroup_kills"), found.get("host_kills"))


def moment_of(record: dict[str, Any], clock: Clock) -> float:
    """Return when something ended that the keeper recorded, on our clock: the wall's may have been set meanwhile."""
    steady_s = record.get("boot_s")
    return clock.at(steady_s) if isinstance(steady_s, float) else float(record["at"])
