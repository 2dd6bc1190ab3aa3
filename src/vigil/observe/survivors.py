"""Which processes belong to which launch, all in one reading: by token, inherited mark, cgroup, or terminal session.

Pid and start time name each process, so that only what was seen here can be signalled later (P9)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from vigil.core.model.launch import Launch, ProcessId
from vigil.kernel.cgroups import read_launch
from vigil.kernel.descent import instance_of, is_ours, mark_of
from vigil.kernel.processes import ScannedProcess, scan_processes

ELSEWHERE = "another instance's"  # the launch of a process of a home's copy, or of the copy's original
UNKNOWN = "removed:"  # the launch of a process whose launch's folder is gone, before its mark


@dataclass(frozen=True, slots=True)
class SeenProcess:
    """One living process of ours: its session, and the launch it names."""

    process: ProcessId
    sid: int
    launch_id: str | None
    ppid: int = 0
    inherited: bool = False  # it does not name its launch: it descends from it


def read_processes(boot: str, spool: str) -> list[SeenProcess]:
    """Read our user's living processes, except unreadable ones; its spool decides whose a process of a copied home is."""
    seen, descent = [], Descent(spool)
    for found in scan_processes(mine_only=True):
        if found is not None:
            theirs = found.spool is not None and _is_anothers(found.spool, spool)
            launch_id = ELSEWHERE if theirs else found.launch or descent.launch_of(found)
            process, inherited = ProcessId(found.pid, found.stat.start_ticks, boot), found.launch is None
            seen.append(SeenProcess(process, found.stat.sid, launch_id, found.stat.ppid, inherited and launch_id is not None))
    return seen


class Descent:
    """The launches of processes that name none: known by what they cannot but inherit."""

    def __init__(self, spool: str) -> None:
        self._spool = spool
        self._instance = instance_of(spool)
        self._launches: dict[int, str] | None = None

    def launch_of(self, found: ScannedProcess) -> str | None:
        """Return the launch that a process descends from, by mark or cgroup; one without a folder is called by its mark."""
        if found.mark is not None and is_ours(found.mark, self._spool):
            return self._by_mark().get(found.mark, f"{UNKNOWN}{found.mark:x}")
        return read_launch(found.pid, self._instance)

    def _by_mark(self) -> dict[int, str]:
        if self._launches is None:
            try:
                names = os.listdir(os.path.join(os.path.dirname(self._spool), "launches"))
            except OSError:
                names = []
            self._launches = {mark_of(self._spool, name): name for name in names}
        return self._launches


def _is_anothers(named: str, spool: str) -> bool:
    """Say whether a spool is surely another instance's; one that is gone was ours, before this home was moved."""
    try:
        return named != spool and not os.path.samefile(named, spool)
    except OSError:
        return False


def survivors_of(
    launch: Launch, spare: Iterable[ProcessId], seen: list[SeenProcess], ended_ticks: float | None
) -> list[ProcessId]:
    """Return a launch's processes among those seen; `spare` are ended in another way, such as its tmux server.

    Token, mark or cgroup decides. A child with none of them still belongs to the launch's terminal session while that number
    is the launch's own: `ended_ticks` is the launch's end, and what began later is not its (P9)."""
    spared = frozenset(spare)
    sid = _own_session(launch, seen)
    return [
        found.process
        for found in seen
        if found.process not in spared
        and (
            found.launch_id == launch.id
            or (
                found.launch_id is None
                and found.sid == sid
                and (ended_ticks is None or found.process.start_ticks <= ended_ticks)
            )
        )
    ]


def _own_session(launch: Launch, seen: list[SeenProcess]) -> int | None:
    """Return the number of a launch's terminal session; None if another process has it since."""
    leader = launch.root or launch.process
    now = None if leader is None else next((found for found in seen if found.process.pid == leader.pid), None)
    if leader is None or (now is not None and now.launch_id == ELSEWHERE):
        return None
    return leader.pid if now is None or now.process == leader else None


def session_of(leader: ProcessId, seen: list[SeenProcess]) -> list[ProcessId]:
    """Return the processes of a terminal session among those seen; none if another leads one of its number since."""
    if any(one.process.pid == leader.pid and one.process != leader for one in seen):
        return []
    return [one.process for one in seen if one.sid == leader.pid]
