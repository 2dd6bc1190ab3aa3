"""What a run was measured on: without the name of the machine or of any folder, so that it can be shown."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.harness import percentile
from vigil import __version__

SYNCS = 200
PAGE = b"\0" * 4096


def read_machine(folder: Path, quick: bool) -> dict[str, Any]:
    """Read cores, memory, kernel, versions, and how long this disk takes to make a page durable."""
    syncs_ms = time_syncs(folder / "syncs")
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "kind": "quick" if quick else "full",
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "filesystem": read_filesystem(folder),
        "fdatasync_p50_ms": percentile(syncs_ms, 0.5),
        "fdatasync_p99_ms": percentile(syncs_ms, 0.99),
        "python": platform.python_version(),
        "tmux": read_tmux(),
        "vigil": __version__,
        "supervisor": metadata.version("supervisor"),
        "circus": metadata.version("circus"),
    }


def time_syncs(path: Path) -> list[float]:
    """Append a page and make it durable, again and again; return the ms each took."""
    took_ms = []
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(SYNCS):
            at = time.monotonic()
            os.write(fd, PAGE)
            os.fdatasync(fd)
            took_ms.append((time.monotonic() - at) * 1000)
    finally:
        os.close(fd)
        path.unlink()
    return took_ms


def read_filesystem(folder: Path) -> str:
    """Read what kind of filesystem a folder lies on: one in memory would make every commit look free."""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            if left.split()[2] == wanted:
                return right.split()[0]
    return "unknown"


def read_tmux() -> str:
    """Ask tmux for its version."""
    result = subprocess.run(["tmux", "-V"], capture_output=True, text=True, timeout=10, check=True)
    return result.stdout.split()[-1]
