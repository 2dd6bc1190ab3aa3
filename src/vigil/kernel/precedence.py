"""Precedence: where the kernel shares its cores out by session, ours comes before those of the agents, if we may say so.

There a session that slept comes before one that just worked: the tmux server of an agent that died would take the core from
whoever writes that death down, and agents that use all there is would make every death late (measured: docs/performance.md).
"""

from __future__ import annotations

from vigil.kernel.proc import PROC

AUTOGROUP = f"{PROC}/self/autogroup"
NICE = -10


def come_first(path: str = AUTOGROUP) -> bool:
    """Give our session precedence, which nobody below us with a session of their own inherits; say whether we might."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(NICE))
    except OSError:
        return False
    return True
