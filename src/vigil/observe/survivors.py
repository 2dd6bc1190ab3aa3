"""Which processes belong to which launch: by its token in their environment, or by the terminal session they are in.

One reading of /proc answers for every launch. Each process is named by pid and start time, so that only what was seen here can
be signalled later (P9).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from vigil.core.model import ProcessId
from vigil.keeper import kernel

TOKEN = b"VIGIL_LAUNCH="


@dataclass(frozen=True, slots=True)
class Seen:
    """One living process of ours: who it is, which session it is in, which launch it says it belongs to."""

    process: ProcessId
    sid: int
    launch_id: str | None


def read_processes(boot: str) -> list[Seen]:
    """Read every living process of our user; what ends meanwhile, or may not be read, is left out."""
    mine = os.getuid()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid != mine:
                continue
            stat = kernel.read_stat(int(name))
            if stat is not None and stat.state not in "ZX":
                found.append(Seen(ProcessId(int(name), stat.start_ticks, boot), stat.sid, _read_launch(name)))
        except OSError:
            continue
    return found


def survivors_of(launch_id: str, leaders: Iterable[int], spare: Iterable[ProcessId], seen: list[Seen]) -> list[ProcessId]:
    """Return the processes of a launch among those seen.

    `leaders` are the pids that led its sessions: a child that cleaned its environment still belongs to one of them. `spare`
    are those that carry the token and are ended in another way, such as its tmux server.
    """
    sids, spared = frozenset(leaders), frozenset(spare)
    return [s.process for s in seen if (s.launch_id == launch_id or s.sid in sids) and s.process not in spared]


def _read_launch(pid: str) -> str | None:
    with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
        for entry in file.read(1 << 20).split(b"\0"):
            if entry.startswith(TOKEN):
                return entry.removeprefix(TOKEN).decode("ascii", "replace")
    return None
