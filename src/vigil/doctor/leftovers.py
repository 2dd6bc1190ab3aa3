"""Checks for leftovers: files of launches that are over, and processes that no session knows."""

from __future__ import annotations

import shlex
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from vigil.doctor.finding import Finding, note, ok, warning
from vigil.doctor.patient import Patient
from vigil.doctor.processes import listener_of, listens, lock_holder
from vigil.home import parts_of
from vigil.kernel import process
from vigil.observe.strays import left_to
from vigil.observe.survivors import ELSEWHERE, read_processes
from vigil.words import few, some

YOUNG_S = 60.0  # a younger one may be a launch under way
TEMPORARY = ("run/*.new", "launches/*/*.tmp", "environments/*.tmp", "spool/tmp/*")
SHOWN = 3


def check_leftovers(patient: Patient) -> list[Finding]:
    """Check for what should have gone and has not."""
    parts = (_sockets, _aside, _temporary, _unknown_launches, _unknown_environments, _descendants)
    return [finding for part in parts for finding in part(patient)] or [ok("none")]


def _descendants(patient: Patient) -> Iterator[Finding]:
    """Yield what dead launches left running, and what agents left to the keeper without a sign of their launch."""
    boot, living = process.read_boot(), {launch.id: launch for launch in patient.launches}
    seen = read_processes(boot, str(patient.home.spool))
    pids: dict[str, list[int]] = defaultdict(list)
    for one in seen:
        if one.launch_id is not None and one.launch_id != ELSEWHERE and (one.launch_id in living or one.inherited):
            pids[one.launch_id].append(one.process.pid)
    for launch_id, found in pids.items():
        launch = living.get(launch_id)
        if launch is None or not launch.living:
            whose = launch.session if launch else "a removed session"
            says = f"{whose} left {some(len(found), 'process', 'processes')} running"
            ends = f"vigil stop {launch.session}" if launch else "vigil reap"
            yield note(f"{says} (pid {few(list(map(str, found)), SHOWN)}); {ends} ends them")
    left = left_to(lock_holder(patient.home.lock("keeper")), seen, [])
    born = {pid for launch in patient.launches for pid in launch.living}
    if unknown := [str(one.pid) for one in left if one.pid not in born]:
        says = f"{some(len(unknown), 'process', 'processes')} that an agent left, of unknown launch (pid {few(unknown, SHOWN)})"
        yield warning(says, "see what it is; vigil daemon stop --kill-sessions ends it with all sessions")


def _sockets(patient: Patient) -> Iterator[Finding]:
    """Yield sockets without a server, and servers without a launch, which a person must end."""
    known = {launch.id for launch in patient.launches}
    stale = []
    for path in sorted(patient.home.run.glob("*.tmux")):
        if not listens(path):
            stale += [path] if _is_old(path) else []
        elif path.stem not in known:
            says = f"a tmux server (pid {listener_of(path)}) of launch {path.stem}, whose folder is gone"
            see = f"tmux -S {shlex.quote(str(path))} attach"
            yield warning(says, f"vigil reap --dry-run shows it, vigil reap ends it; see what it runs: {see}")
    if stale:
        says = f"{len(stale)} sockets of tmux servers that are gone: {_some(stale)}"
        yield warning(says, "vigil doctor --fix removes them", partial(_remove_sockets, stale))


def _remove_sockets(paths: list[Path]) -> str:
    gone = [path for path in paths if not listens(path)]
    for path in gone:
        path.unlink(missing_ok=True)
    return f"removed {len(gone)} stale sockets"


def _aside(patient: Patient) -> Iterator[Finding]:
    """Yield folders that stood in the place of a socket."""
    found = sorted(patient.home.run.glob("*.sock.aside-*"))
    if found:
        what = f"{some(len(found), 'folder')} that stood in a socket's place, moved aside"
        yield note(f"{what}: {_some(found)} in {patient.home.run}; remove what you do not need")


def _temporary(patient: Patient) -> Iterator[Finding]:
    home = patient.home
    found = [path for pattern in TEMPORARY for path in sorted(home.path.glob(pattern)) if _is_old(path)]
    found += [path for path in sorted(home.run.glob("*.new")) if _is_old(path) and path not in found]
    if found:
        says = f"{len(found)} temporary files that were never finished: {_some(found)}"
        yield warning(says, "vigil doctor --fix removes them", partial(_remove, found))


def _remove(paths: list[Path]) -> str:
    for path in paths:
        path.unlink(missing_ok=True)
    return f"removed {len(paths)} temporary files"


def _unknown_launches(patient: Patient) -> Iterator[Finding]:
    """Yield launches without a session, whose id they bear; they stay until a person has looked."""
    ids = patient.database.session_ids
    if ids is None and patient.database.state != "absent":
        return  # what the database knows cannot be told
    unknown = [launch for launch in patient.launches if (parts_of(launch.id) or ("",))[0] not in (ids or ())]
    for launch in unknown:
        if launch.living:
            pids = ", ".join(map(str, launch.living))
            says = f"launch {launch.id} ({launch.session}) lives (pid {pids}), and no session knows it"
            yield warning(says, "the daemon's next start takes it over; vigil reap --dry-run shows what is nobody's")
    dead = [patient.home.launch(launch.id) for launch in unknown if not launch.living]
    dead = [folder for folder in dead if _is_old(folder)]
    if dead:
        yield note(f"{len(dead)} launch folders no session knows, kept as evidence: {_some(dead)}")


def _unknown_environments(patient: Patient) -> Iterator[Finding]:
    ids = patient.database.session_ids
    if ids is None:
        return
    files = sorted(patient.home.environments.glob("*.json"))
    lone = [path for path in files if not path.name.startswith("role-")]  # the daemon's next start removes those of roles
    found = [path for path in lone if path.stem not in ids and _is_old(path)]
    if found:
        says = f"{len(found)} environments of sessions that are gone (they may hold secrets): {_some(found)}"
        yield warning(says, f"remove them: rm {shlex.join(map(str, found[:SHOWN]))}{' ...' if len(found) > SHOWN else ''}")


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > YOUNG_S
    except FileNotFoundError:
        return False


def _some(paths: list[Path]) -> str:
    return few([path.name for path in paths], SHOWN)
