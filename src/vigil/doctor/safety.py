"""Checks for what strangers and agents could use: folders in /tmp, files that are none, a daemon below an agent."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from vigil.doctor.finding import Finding, note, ok, warning
from vigil.doctor.patient import Patient
from vigil.doctor.processes import lock_holder
from vigil.kernel import process
from vigil.words import few, some

SHOWN = 3
DEPTH = 64
MOST_FILES = 20_000  # of a home that grew without end, the first ones


def check_safety(patient: Patient) -> list[Finding]:
    """Check the doors to other users, and what an agent may have left for us to open."""
    findings = [*_run_folder(patient), *_tmux_folder(), *_strange_files(patient), *_daemon_below_keeper(patient)]
    return [*(findings or [ok("no folder of others, no strange file in the home")]), *_unconfined(patient)]


def _run_folder(patient: Patient) -> Iterator[Finding]:
    run = patient.home.run
    if run.parent == Path("/tmp"):
        says = f"sockets lie in {run}, where others could make that folder first; Vigil then refuses to use it"
        yield note(f"{says}. A shorter VIGIL_HOME, or XDG_RUNTIME_DIR, keeps them away")


def _tmux_folder() -> Iterator[Finding]:
    """Yield a warning about your own tmux servers' folder if another user could replace them."""
    folder = Path(os.environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"
    try:
        found = folder.lstat()
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid():
        whose = "is a link" if stat.S_ISLNK(found.st_mode) else f"belongs to uid {found.st_uid}"
        yield warning(
            f"{folder} {whose}: its tmux servers are not yours, and are not adopted", f"ask who made it: ls -ld {folder}"
        )
    elif found.st_mode & 0o022:
        says = f"{folder} may be written by others, who could put their own server there"
        yield warning(says, f"chmod 700 {folder}", partial(_tighten, folder))


def _tighten(folder: Path) -> str:
    folder.chmod(0o700)
    return f"chmod 700 {folder}"


def _strange_files(patient: Patient) -> Iterator[Finding]:
    """Yield what lies among the launches' and hooks' files and is no file: to open it could wait for ever."""
    home = patient.home
    found = [path for folder in (home.launches, home.spool) for path in _no_files(folder)]
    if found:
        what = some(len(found), "pipe, device or link", "pipes, devices or links")
        says = f"{what} where agents' files lie, which Vigil does not open: {_some(found)}"
        yield warning(says, "see which agent made them; vigil rm of its session removes them")


def _no_files(folder: Path) -> Iterator[Path]:
    for count, (where, folders, names) in enumerate(os.walk(folder)):
        if count > MOST_FILES:
            return
        for name in (*folders, *names):
            path = Path(where, name)
            try:
                mode = path.lstat().st_mode
            except OSError:
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISSOCK(mode)):
                yield path


def _daemon_below_keeper(patient: Patient) -> Iterator[Finding]:
    """Yield a warning if an agent started the daemon: it then has that agent's environment and place."""
    daemon, keeper = (lock_holder(patient.home.lock(name)) for name in ("daemon", "keeper"))
    pid = daemon or 0
    for _ in range(DEPTH):
        found = process.read_stat(pid) if pid else None
        pid = found.ppid if found else 0
        if keeper is not None and pid == keeper:
            says = f"the daemon (pid {daemon}) was started by an agent, and has what that agent gave it"
            yield warning(says, "vigil daemon stop, then vigil daemon start in your own terminal: sessions run on")
            return


def _unconfined(patient: Patient) -> Iterator[Finding]:
    """Yield a note about living agents that may read what their user may."""
    living = patient.living
    free = sum(not launch.confined for launch in living)
    if free:
        yield note(f"{free} of {len(living)} living agents have no sandbox: they can read what you can (docs/security.md)")


def _some(paths: list[Path]) -> str:
    return few([str(path) for path in paths], SHOWN)
