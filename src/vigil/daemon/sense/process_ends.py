"""Ends of processes: those of a launch by role, and how each ended as the keeper recorded it."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

from vigil.core.model.death import Oom
from vigil.core.model.launch import Launch, ProcessId
from vigil.daemon.base.clock import Clock
from vigil.keeper import records, wire
from vigil.keeper.protocol import ExitWord, KillFacts


@dataclass(frozen=True)
class ProcessEnd:
    """The end of one process: how it ended, and who said so."""

    status: int | None
    source: str
    at: float
    oom: Oom | None = None
    by_keeper: bool = False  # it waited for the process

    @property
    def killed(self) -> bool:
        """A SIGKILL ended the process, a sender's or the kernel's own."""
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL


def roles_of(launch: Launch) -> dict[str, ProcessId]:
    inner = launch.found if launch.found != launch.process else None
    known = {"inner": inner, "agent": launch.process, "root": launch.root, "server": launch.server}
    return {role: process for role, process in known.items() if process is not None}


def agent_role(launch: Launch) -> str:
    """Return whose process end is the launch's: the found agent's, else its command's."""
    return "inner" if launch.found is not None and launch.found != launch.process else "agent"


def runtime_role(launch: Launch) -> str:
    """Return whose process end closes the runtime: the pane root's, or the headless command's."""
    return "agent" if launch.root is None else "root"


def ends_from_records(folder: str, clock: Clock) -> dict[str, ProcessEnd]:
    """Read how a launch's processes ended, as the keeper recorded it while no daemon listened."""
    ends = {}
    for role, record in records.read_exits(folder).items():
        with contextlib.suppress(wire.Malformed):  # a broken record says as little as none
            ends[role] = end_of(wire.read(ExitWord, record), clock)
    return ends


def _oom_of(facts: KillFacts) -> Oom:
    return Oom(facts.named, facts.cgroup or "", facts.cgroup_kills, facts.host_kills, facts.elsewhere)


def end_of(word: ExitWord, clock: Clock) -> ProcessEnd:
    at = word.at if word.boot_s is None else clock.at(word.boot_s)  # the wall clock may have been set since
    facts = word.oom  # None: it did not ask
    oom = None if facts is None else _oom_of(facts)
    return ProcessEnd(word.status, f"keeper ({word.source or 'unknown'})", at, oom, by_keeper=True)
