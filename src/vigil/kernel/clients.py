"""How many clients are connected to each tmux server, read from the kernel: no process is started, no server is asked."""

from __future__ import annotations

from vigil.kernel.proc import PROC

UNIX_SOCKETS = f"{PROC}/net/unix"
CONNECTED = "03"


def read_clients(path: str = UNIX_SOCKETS) -> dict[str, int] | None:
    """Read the number of open connections by socket path; None if that cannot be read, which is not nobody (P7)."""
    counts: dict[str, int] = {}
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            next(file, None)
            for line in file:
                fields = line.rstrip("\n").split(None, 7)
                if len(fields) == 8 and fields[5] == CONNECTED:  # one that was accepted bears its listener's path
                    counts[fields[7]] = counts.get(fields[7], 0) + 1
    except OSError:
        return None
    return counts
