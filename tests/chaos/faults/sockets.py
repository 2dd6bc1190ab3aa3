"""Sockets that go, and servers that no longer take connections."""

from __future__ import annotations

import os
import signal
import socket
import time

from tests.chaos.history import Part
from tests.chaos.stage import Stage

CROWD = 300  # connections, more than a backlog holds


def remove_keeper_socket(stage: Stage) -> str:
    return _remove(stage, "keeper.sock")


def remove_api_socket(stage: Stage) -> str:
    return _remove(stage, "api.sock")


def remove_sockets_and_kill(stage: Stage) -> str:
    """One or both, then the daemon dies: at once, or when somebody may have noticed."""
    names = stage.rng.choice((("keeper.sock",), ("api.sock",), ("keeper.sock", "api.sock")))
    pause_s = stage.rng.choice((0.0, 0.3, 3.0))
    done = [_remove(stage, name) for name in names]

    def strike() -> None:
        time.sleep(pause_s)
        for life in stage.watch.alive(Part.DAEMON):
            stage.shoot(life, signal.SIGKILL)

    stage.later(strike)
    return "; ".join(filter(None, done)) + f"; daemon: SIGKILL after {pause_s} s"


def _remove(stage: Stage, name: str) -> str:
    try:
        os.unlink(stage.place.run / name)
    except FileNotFoundError:
        return ""
    return f"rm {name}"


def stop_crowded_servers(stage: Stage) -> str:
    """Stop a few servers for half a minute, with so many waiting before them that the next cannot even connect."""
    stopped, held = [], []
    for _ in range(stage.rng.randint(3, 9)):
        life, for_s = stage.pick(Part.SERVER), stage.rng.uniform(15, 40)
        if life is None or not stage.freeze(life, for_s):
            continue
        stage.excuse("server stopped", for_s + 0.5, life.launch)
        crowd = _crowd(str(stage.place.run / f"{life.launch}.tmux"))
        held += crowd
        stopped.append(f"{life.launch} ({len(crowd)} waiting) for {for_s:.0f} s")

    def leave() -> None:
        for sock in held:
            sock.close()

    stage.heal_after(40, leave)
    return f"stopped: {', '.join(stopped)}" if stopped else ""


def _crowd(path: str) -> list[socket.socket]:
    held = []
    for _ in range(CROWD):
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        try:
            sock.connect(path)
        except OSError:
            sock.close()
            break
        held.append(sock)
    return held
