"""Checks of room: what daemon, keeper and host have left of descriptors, processes and inodes, and what a lack means."""

from __future__ import annotations

import os

from vigil.doctor.finding import Finding, note, ok, problem, warning
from vigil.doctor.patient import Patient
from vigil.doctor.processes import lock_holder
from vigil.kernel.limits import Supply, read_cgroup_tasks, read_host_tasks, read_inodes, read_open_files, read_user_tasks

NONE_LEFT, FEW_LEFT = 8, 64
MEANS_FILES = {
    "daemon": "it answers a few callers a second, refuses launches, and hears of deaths by the keeper alone",
    "keeper": "it refuses launches and new callers, and still records every end",
}
MEANS_TASKS = "launches are refused (nobody is charged), commands of routes wait, and nothing that runs is touched"
MEANS_INODES = "no launch can be made and no record be written, though there is room"


def check_room(patient: Patient) -> list[Finding]:
    """Check what is left for the daemon, the keeper, and the processes below it."""
    found: list[Finding] = []
    pids = {who: lock_holder(patient.home.lock(who)) for who in ("daemon", "keeper")}
    for who, pid in pids.items():
        files = None if pid is None else read_open_files(pid)
        if files is not None:
            found += judge(f"descriptors of the {who} (pid {pid})", files, MEANS_FILES[who], "raise its limit, or end sessions")
    asks = next((pid for pid in (pids["keeper"], pids["daemon"]) if pid is not None), os.getpid())
    tasks = (
        ("pids of the host", read_host_tasks(), "see what forks (ps -eLf), or raise kernel.pid_max"),
        ("processes of your user", read_user_tasks(asks), "see what forks, or raise the limit (ulimit -u)"),
        ("processes of the cgroup", read_cgroup_tasks(asks), "see what forks, or raise its pids.max"),
    )
    for what, supply, todo in tasks:
        if supply is not None:
            found += judge(what, supply, MEANS_TASKS, todo)
    inodes = read_inodes(patient.home.path) if patient.home.path.exists() else None
    if inodes is not None:
        found += judge(f"inodes of {patient.home.path}", inodes, MEANS_INODES, "remove files there")
    return found or [ok("descriptors, processes and inodes are left")]


def judge(what: str, supply: Supply, means: str, todo: str) -> list[Finding]:
    """Return what it means that so much is left; nothing if that is enough."""
    says = f"{what}: {supply.left} left of {supply.most}"
    if supply.left <= NONE_LEFT:
        return [problem(f"{says}: {means}", todo)]
    if supply.left <= FEW_LEFT and supply.left * 10 < supply.most:
        return [warning(f"{says}: soon {means}", todo)]
    if supply.left <= FEW_LEFT:
        return [note(says)]
    return []
