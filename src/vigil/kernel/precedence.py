"""Precedence: where the kernel shares cores by session, ours comes before those of the agents, if we may.

Else a dead agent's tmux server, which slept, outranks us, and busy agents make each death late (docs/performance.md)."""

from __future__ import annotations

from vigil.kernel.proc import PROC

AUTOGROUP = f"{PROC}/self/autogroup"
NICE = -10


def come_first(path: str = AUTOGROUP) -> bool:
    """Give our session precedence, which no session below inherits; say whether we might."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(NICE))
    except OSError:
        return False
    return True
