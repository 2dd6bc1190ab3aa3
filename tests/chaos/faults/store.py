"""The store locked by another, the disk full, a FIFO where hooks are read."""

from __future__ import annotations

import os
import sqlite3
import threading
import time

from tests.chaos.stage import Stage

CHUNK = b"\0" * (1 << 20)


def lock(stage: Stage) -> str:
    """Hold the store's lock from another connection for seconds."""
    for_s, free = stage.rng.uniform(0.5, 6.0), threading.Event()
    path = stage.place.home / "vigil.db"

    def strike() -> None:
        other = sqlite3.connect(path, timeout=10, isolation_level=None)
        try:
            other.execute("begin exclusive")
            stage.excuse("store locked", for_s + 1.0)
            free.wait(for_s)
            other.execute("rollback")
        except sqlite3.Error:
            pass  # it was full, or another held it for longer
        finally:
            other.close()

    stage.later(strike)
    stage.heal_after(for_s, free.set)
    return f"store locked for {for_s:.1f} s"


def fill(stage: Stage) -> str:
    """Fill the home's disk for seconds."""
    if not stage.place.small:
        return ""
    for_s, path = stage.rng.uniform(1.0, 6.0), stage.place.home / "filler"
    stage.excuse("store full", for_s + 2.0)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for size in (len(CHUNK), 4096, 1):
            while os.write(fd, CHUNK[:size]) == size:
                pass
    except OSError:
        pass
    finally:
        os.close(fd)
    stage.heal_after(for_s, lambda: path.unlink(missing_ok=True))
    return f"disk full for {for_s:.1f} s"


def plant_fifo(stage: Stage) -> str:
    """Put a pipe that nobody writes to where hooks are read."""
    for_s = stage.rng.uniform(5, 30)
    path = stage.place.home / "spool" / "new" / f"{time.time_ns()}.json"
    os.mkfifo(path, 0o600)
    stage.heal_after(for_s, lambda: path.unlink(missing_ok=True))
    return f"a FIFO in the spool for {for_s:.0f} s"
