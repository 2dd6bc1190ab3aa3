"""Which processes belong to a launch: by its token in their environment, by its terminal session, by descent.

Each is named by pid and start time, so that only what was seen here can be signalled later (P9).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from vigil.core.model import ProcessId
from vigil.keeper import kernel


def find_survivors(launch_id: str, leaders: Iterable[int], boot: str, spare: Iterable[ProcessId]) -> list[ProcessId]:
    """Return the living processes of a launch.

    `leaders` are the pids that led its sessions: a child that cleaned its environment still belongs to one of them. `spare`
    are ends of others that carry the token and are ended in another way, such as its tmux server.
    """
    token = f"VIGIL_LAUNCH={launch_id}".encode()
    sids = frozenset(leaders)
    spared = frozenset(spare)
    mine = os.getuid()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        try:
            if os.stat(f"/proc/{name}").st_uid != mine:
                continue
            stat = kernel.read_stat(pid)
            if stat is None or stat.state in "ZX":
                continue
            process = ProcessId(pid, stat.start_ticks, boot)
            if process not in spared and (stat.sid in sids or _carries(pid, token)):
                found.append(process)
        except OSError:
            continue  # it ended while we looked, or is not ours to read
    return found


def _carries(pid: int, token: bytes) -> bool:
    with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
        return token in file.read(1 << 20).split(b"\0")
