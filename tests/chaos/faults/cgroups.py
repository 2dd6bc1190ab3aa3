"""Cgroups that Vigil did not make: an agent is moved there, and may run out of memory there."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.chaos.history import Part
from tests.chaos.stage import Stage

LIMIT_BYTES = 60 << 20
KNOWN_S = 3.0  # by then it listens to us
TOPS = {Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes", Path("/sys/fs/cgroup"): "memory.max"}


def move(stage: Stage) -> str:
    life, cage = stage.pick(Part.AGENT), _cage(stage, "moved", 1 << 40)  # what happens in the other is not about it
    if life is None or cage is None or not _admit(cage, life.pid):
        return ""
    return f"agent {life.pid} {life.launch} moved to {cage.name}"


def run_out_of_memory(stage: Stage) -> str:
    known = time.time() - KNOWN_S
    hogs = [life for life in stage.watch.alive(Part.AGENT) if life.session.startswith("hog") and life.began_at < known]
    cage = _cage(stage, "short", LIMIT_BYTES)
    if not hogs or cage is None:
        return ""
    life = stage.rng.choice(hogs)
    if not _admit(cage, life.pid):
        return ""
    stage.note("out of memory", subject=life.launch)
    stage.shoot(life, signal.SIGUSR1)
    return f"hog {life.pid} {life.launch} runs out of memory in {cage.name}"


def _cage(stage: Stage, name: str, limit_bytes: int) -> Path | None:
    """Return a cgroup with so much memory; None where none can be made."""
    for top, limit in TOPS.items():
        cage = top / f"{stage.place.base.name}-{name}"
        try:
            cage.mkdir(exist_ok=True)
            (cage / limit).write_text(f"{limit_bytes}\n")
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
    for top in TOPS:
        for cage in top.glob(f"{base.name}-*"):
            try:
                cage.rmdir()
            except OSError:
                pass


def remove_folders(home: Path) -> None:
    """Remove the cgroups of a home's launches, now that all of them are over."""
    try:
        with closing(sqlite3.connect(f"file:{home / 'vigil.db'}?mode=ro", uri=True)) as store:
            bodies = [json.loads(row[0]) for row in store.execute("select body from launches")]
    except sqlite3.Error:
        return
    for top in {Path(body["cgroup"]).parent for body in bodies if body.get("cgroup")}:
        for folder in [*top.glob("*/"), top]:
            try:
                folder.rmdir()
            except OSError:
                pass
