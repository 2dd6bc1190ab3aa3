"""Checks of an instance: its folders, database, daemon and keeper. They only read; a finding carries its mend."""

from __future__ import annotations

import os
import stat
import time
from functools import partial
from pathlib import Path

from vigil import __version__
from vigil.client.starting import start_daemon
from vigil.doctor.deaf import deaf_daemon, deaf_keeper, stopped, taken_socket
from vigil.doctor.finding import Finding, note, ok, problem, warning
from vigil.doctor.patient import Patient
from vigil.doctor.processes import NoAnswer, listener_of, listens, lock_holder, wait_for_keeper
from vigil.home import LONGEST_SOCKET_NAME, SOCKET_PATH_BYTES, Home, make_home
from vigil.keeper.protocol import VERSION
from vigil.kernel import process
from vigil.kernel.cgroups import CONTROLLERS
from vigil.kernel.files import read_file_system
from vigil.words import few

LITTLE_BYTES = 500 << 20
TOO_LITTLE_BYTES = 50 << 20
LARGE_BYTES = 1 << 30
SHOWN = 5
REMOTE = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph"}
GET_CGROUPS = (
    "In a systemd user session (loginctl enable-linger keeps one) a new keeper starts in a delegated scope, as by systemd-run "
    "--user --scope -p Delegate=yes; elsewhere name a cgroup2 folder that the keeper may enter: cgroup_root in [isolation]"
)
ANOTHER_HOME = "set VIGIL_HOME to a folder of your own"


def check_home(patient: Patient) -> list[Finding]:
    """Check the folder that holds everything."""
    path = patient.home.path
    if not path.exists():
        if path.is_symlink():
            return [problem(f"{path} is a link to nowhere", f"remove it, or {ANOTHER_HOME}")]
        return [_missing_home(patient.home)]
    if not path.is_dir():
        return [problem(f"{path} is not a folder", f"remove it, or {ANOTHER_HOME}")]
    found = path.stat()
    if found.st_uid != os.getuid():
        return [problem(f"{path} belongs to uid {found.st_uid}", ANOTHER_HOME)]
    findings = [*_open_to_others(path), *_space(path), *_remote(path)]
    if not os.access(path, os.W_OK | os.X_OK):
        findings.append(problem(f"{path} may not be written", f"chmod 700 it, or {ANOTHER_HOME}", partial(_tighten, path)))
    for folder in (patient.home.launches, patient.home.environments, patient.home.spool, patient.home.log):
        findings += _open_to_others(folder)
    return findings or [ok(f"{path}, {_megabytes(_free_bytes(path))} free")]


def _missing_home(home: Home) -> Finding:
    parent = next(folder for folder in home.path.parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        return problem(f"{home.path} does not exist, and you may not create it in {parent}", ANOTHER_HOME)

    def mend() -> str:
        make_home(home)
        return f"created {home.path}"

    return note(f"{home.path} does not exist yet; the first command that needs it creates it", mend=mend)


def _open_to_others(folder: Path) -> list[Finding]:
    try:
        found = folder.lstat()
    except OSError:
        return []
    if stat.S_ISLNK(found.st_mode):
        found = folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if not mode & 0o077:
        return []
    says = f"{folder} is open to others (mode {mode:o}): they could read what agents print and are given"
    return [problem(says, f"chmod 700 {folder}", partial(_tighten, folder))]


def _tighten(folder: Path) -> str:
    folder.chmod(0o700)
    return f"chmod 700 {folder}"


def _space(path: Path) -> list[Finding]:
    free = _free_bytes(path)
    if free < TOO_LITTLE_BYTES:
        return [problem(f"only {_megabytes(free)} free in {path}: nothing can be recorded soon", "free some space")]
    if free < LITTLE_BYTES:
        return [warning(f"only {_megabytes(free)} free in {path}", "free some space")]
    return []


def _free_bytes(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MB" if size >= 1 << 20 else f"{size / 1024:,.0f} kB"


def _remote(path: Path) -> list[Finding]:
    """Warn of a remote file system: SQLite's log and locks need a local one."""
    kind = read_file_system(path)
    if kind in REMOTE:
        return [warning(f"{path} lies on {kind}: locks and the database are not safe there", f"{ANOTHER_HOME} on a local disk")]
    return []


def check_isolation(patient: Patient) -> list[Finding]:
    """Check whether launches get cgroups of their own, by what the daemon says."""
    found = None if isinstance(patient.status, NoAnswer) or patient.status is None else patient.status.get("isolation")
    if found is None:
        return [note("no daemon runs that would tell")]
    if not found["folder"]:
        says = f"launches get no cgroup ({found['why']}): memory_max, pids_max and cpu_weight are refused"
        return [note(f"{says}. {GET_CGROUPS}")]
    missing = [name for name in CONTROLLERS if name not in found["controllers"]]
    if missing:
        says = f"each launch has a cgroup in {found['folder']}, without {' and '.join(missing)}: such limits are refused"
        return [note(f"{says}. {GET_CGROUPS}")]
    return [ok(f"each launch has a cgroup in {found['folder']}, with all limits")]


def check_sockets(patient: Patient) -> list[Finding]:
    """Check the folder of the sockets: short enough for the kernel, and our own."""
    run = patient.home.run
    longest = len(os.fsencode(run)) + 1 + LONGEST_SOCKET_NAME
    if longest > SOCKET_PATH_BYTES:
        return [problem(f"paths in {run} may reach {longest} bytes, the kernel takes {SOCKET_PATH_BYTES}", ANOTHER_HOME)]
    elsewhere = "" if run.parent == patient.home.path else " (VIGIL_HOME is too long a path for sockets)"
    says = f"{run}{elsewhere}, paths of at most {longest} bytes of {SOCKET_PATH_BYTES}"
    try:
        found = run.lstat()
    except OSError:
        return [ok(f"{says}; made when needed")]
    if not stat.S_ISDIR(found.st_mode):
        return [problem(f"{run} is not a folder", "remove it; vigil doctor --fix moves it aside", partial(_make_run, run))]
    if found.st_uid != os.getuid():
        return [problem(f"{run} belongs to uid {found.st_uid}", ANOTHER_HOME)]
    return _open_to_others(run) or [ok(says)]


def _make_run(run: Path) -> str:
    """Put a folder in the place of what is none; daemon and keeper make their sockets in it anew."""
    aside = run.with_name(f"{run.name}.aside-{os.urandom(4).hex()}")
    os.rename(run, aside)
    run.mkdir(mode=0o700)
    return f"moved it aside to {aside}"


def check_database(patient: Patient) -> list[Finding]:
    """Check the store: undamaged, ours, and of a schema this Vigil knows."""
    path, found = patient.home.database, patient.database
    size = _megabytes(found.size_bytes)
    if found.state in ("absent", "empty"):
        return [ok("none yet; made by the first start")]
    if found.state == "damaged":
        todo = "restore a copy, or let --fix move it aside and start anew (it is kept; sessions must be declared again)"
        return [problem(f"{path} is damaged: {found.why}", todo, partial(_move_aside, patient))]
    if found.state == "foreign":
        return [problem(f"{path} is a database, but not Vigil's", f"move it away, or {ANOTHER_HOME}")]
    if found.state == "newer":
        return [problem(f"{path} was written by a newer Vigil ({found.why})", f"upgrade Vigil, or {ANOTHER_HOME}")]
    if found.state == "unreadable":
        return [problem(f"{path} cannot be read: {found.why}", "see who owns it and whether the disk works")]
    if found.state == "older":
        return [note(f"{found.why}: it is migrated by the next start of the daemon")]
    findings = [ok(f"{size}, {found.why}, sessions: {len(found.session_ids or ())}")]
    if found.size_bytes > LARGE_BYTES:
        findings = [note(f"{size} is large; `vigil rm` purges sessions you no longer need")]
    if path.stat().st_mode & 0o077:
        findings.append(note(f"{path} itself is readable by others; its folder keeps them out"))
    return findings


def _move_aside(patient: Patient) -> str:
    """Move a damaged database away, with its other files, unless a daemon has it open."""
    home = patient.home
    if listens(home.api_socket) or lock_holder(home.lock("daemon")):
        return "did not move the database: a daemon has it open (vigil daemon stop, then again)"
    aside = home.database.with_name(f"{home.database.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    for suffix in ("-wal", "-shm", ""):
        old = home.database.with_name(home.database.name + suffix)
        if old.exists():
            os.rename(old, aside.with_name(aside.name + suffix))
    words = f"moved the damaged database aside to {aside}"
    if patient.living:
        pids = ", ".join(str(pid) for launch in patient.living for pid in launch.living)
        words += f"; what it knew still runs and is not watched any more: pid {pids}"
    return words


def check_daemon(patient: Patient) -> list[Finding]:
    """Check the process that decides."""
    status, home = patient.status, patient.home
    if isinstance(status, NoAnswer):
        return [_silent_daemon(home, status)]
    if status is None:
        return [_no_daemon(patient)]
    findings = []
    if status["version"] != __version__:
        says = f"pid {status['pid']} is version {status['version']}, this command is {__version__}"
        todo = "vigil daemon stop: its sessions run on, and the next command starts the new one"
        findings.append(warning(says, todo))
    if status["store_trouble"]:
        says = f"pid {status['pid']} cannot write the database: {status['store_trouble']}"
        findings.append(problem(says, "free some space; it goes on by itself"))
    if status["unknown_events"]:
        kinds = [f"{one['agent']} {one['name']} ({one['count']})" for one in status["unknown_events"]]
        findings.append(note(f"events of agents that nobody knows here: {few(kinds, SHOWN)}; they count as life"))
    return findings or [ok(f"pid {status['pid']}, version {status['version']}, sessions watched: {status['sessions']}")]


def _silent_daemon(home: Home, silence: NoAnswer) -> Finding:
    if silence.deaf is not None:
        return deaf_daemon(home, silence.deaf)
    holder, listener = lock_holder(home.lock("daemon")), listener_of(home.api_socket)
    if holder is not None and listener is not None and listener != holder:
        return taken_socket(home, holder, listener)
    return _silent("daemon", holder, silence, home.log / "daemon.log")


def _no_daemon(patient: Patient) -> Finding:
    home = patient.home

    def mend() -> str:
        start_daemon(home)
        return "started the daemon"

    if patient.living:
        says = f"does not run, and sessions live ({len(patient.living)}): nothing is brought back"
        return warning(says, "vigil daemon start", mend)
    return note("does not run; any command that needs it starts it", mend=mend)


def _silent(who: str, pid: int | None, silence: NoAnswer, log: Path) -> Finding:
    state = process.read_stat(pid) if pid else None
    if pid is not None and state is not None and state.state in "Tt":
        return stopped(pid)
    last = f", or end it (kill {pid}): sessions live on, and the next command starts it anew" if pid else ""
    return problem(f"{f'pid {pid}' if pid else who} does not answer: {silence}", f"see {log}{last}")


def check_keeper(patient: Patient) -> list[Finding]:
    """Check the process that records every end."""
    home = patient.home
    try:
        answer = wait_for_keeper(home)
    except NoAnswer as silence:
        return [_silent("keeper", lock_holder(home.lock("keeper")), silence, home.log / "keeper.log")]
    if answer is not None:
        older = f"; version {answer.version} of its protocol, the daemon upgrades it" if answer.version < VERSION else ""
        return [ok(f"pid {answer.pid}, processes watched: {answer.watching}{older}")]
    if (holder := lock_holder(home.lock("keeper"))) is not None:
        return [deaf_keeper(patient, holder)]
    if isinstance(patient.status, dict):
        return [warning("does not run, though the daemon does", f"it should be back in a second; if not, see {home.log}")]
    if patient.living:
        says = f"does not run, and sessions live ({len(patient.living)}): how they end may stay unknown"
        return [warning(says, "vigil daemon start")]
    return [ok("does not run; there is nothing to watch")]
