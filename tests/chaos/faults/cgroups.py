"""Cgroups that Vigil did not make: an agent is moved there, and may run out of memory there."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.chaos.history import Part
from tests.chaos.stage import Stage

LIMIT_BYTES = 60 << 20


def move(stage: Stage) -> str:
    life, cage = stage.pick(Part.AGENT), _cage(stage)
    if life is None or cage is None or not _admit(cage, life.pid):
        return ""
    return f"agent {life.pid} {life.launch} moved to {cage.name}"


def run_out_of_memory(stage: Stage) -> str:
    hogs = [life for life in stage.watch.alive(Part.AGENT) if life.session.startswith("hog")]
    cage = _cage(stage)
    if not hogs or cage is None:
        return ""
    life = stage.rng.choice(hogs)
    if not _admit(cage, life.pid):
        return ""
    stage.note("out of memory", subject=life.launch)
    stage.shoot(life, signal.SIGUSR1)
    return f"hog {life.pid} {life.launch} runs out of memory in {cage.name}"


def _cage(stage: Stage) -> Path | None:
    """Return a cgroup with little memory; None where none can be made."""
    for top, limit in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        cage = top / stage.place.base.name
        try:
            cage.mkdir(exist_ok=True)
            (cage / limit).write_text(f"{LIMIT_BYTES}\n")
        except OSError:
            continue
        return cage
    return None


def _admit(cage: Path, pid: int) -> bool:
    try:
        (cage / "cgroup.procs").write_text(f"{pid}\n")
    except OSError:
        return False
    return True


def remove_cages(base: Path) -> None:
    """Remove what was made for a run, once nobody is in it."""
    for top in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
        try:
            (top / base.name).rmdir()
        except OSError:
            pass
