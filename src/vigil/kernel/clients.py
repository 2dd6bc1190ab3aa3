"""How many clients are connected to each tmux server, by the kernel: starts no process, asks no server."""

from __future__ import annotations

from vigil.kernel.proc import PROC

UNIX_SOCKETS = f"{PROC}/net/unix"
CONNECTED = "03"


def read_clients(path: str = UNIX_SOCKETS) -> dict[str, int] | None:
    """Read the connections by socket path, a person each (Vigil attaches none); None is unknown, not zero (P7)."""
    counts: dict[str, int] = {}
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            next(file, None)
            for line in file:
                fields = line.rstrip("\n").split(None, 7)
                if len(fields) == 8 and fields[5] == CONNECTED:  # an accepted one bears its listener's path
                    counts[fields[7]] = counts.get(fields[7], 0) + 1
    except OSError:
        return None
    return counts
