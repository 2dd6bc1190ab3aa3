"""Checks of the machine: what Python, tmux, the kernel and the session around us can do."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import shutil
import subprocess
import sys

from vigil.agents.adapters import ADAPTERS
from vigil.doctor.finding import Finding, note, ok, problem, warning
from vigil.kernel import process
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.host import read_oom_kills
from vigil.kernel.kernel_log import KernelLog

RUN_S = 5.0
PR_GET_CHILD_SUBREAPER = 37
AGENTS = tuple(program for adapter in ADAPTERS.values() for program in adapter.command)
OLDEST_TMUX = (3, 2)
TMUX_FAULTS = (  # first version without the fault, and what the fault means here
    ((3, 4), "a paste into a dead pane crashes the server (only that session's own)"),
    ((3, 6), "built with utempter it loses exit statuses (Vigil takes them from the kernel)"),
)
FILES_PER_SESSION = 4  # pidfds of agent, pane root and server, and one spare
FILES_BESIDES = 64
FEW_SESSIONS = 100


def check_python() -> list[Finding]:
    """Check the interpreter, which also runs daemon and keeper."""
    version = platform.python_version()
    if not sys.executable or not os.access(sys.executable, os.X_OK):
        return [problem(f"{version}, but its program is gone: no daemon can be started", "install Vigil again")]
    return [ok(f"{version} (3.11 or newer is needed)")]


def check_tmux() -> list[Finding]:
    """Check whether tmux is there, and which faults this version has."""
    path = shutil.which("tmux")
    if path is None:
        return [problem("not installed", "install it (apt-get install tmux), or run everything with --runtime headless")]
    try:
        said = subprocess.run([path, "-V"], capture_output=True, text=True, errors="replace", timeout=RUN_S).stdout.strip()
    except subprocess.TimeoutExpired:
        return [problem(f"{path} -V gave no answer in {RUN_S:g} s", "see what this program is")]
    return [judge_tmux(said)]


def judge_tmux(said: str) -> Finding:
    """Return what the answer to `tmux -V` means."""
    found = re.search(r"(\d{1,9})\.(\d{1,9})([a-z]?)", said)
    if not said.startswith("tmux ") or (found is None and not said.endswith("master")):
        return note(f"{said!r} is a version this doctor does not know")
    if found is None or said.startswith("tmux openbsd"):
        return ok(said.removeprefix("tmux "))
    version = (int(found[1]), int(found[2]))
    name = said.removeprefix("tmux ")
    if version < OLDEST_TMUX:
        return problem(f"{name} is too old", "install tmux 3.2 or newer, or run everything with --runtime headless")
    faults = [f"{fault}, fixed in {fixed[0]}.{fixed[1]}" for fixed, fault in TMUX_FAULTS if version < fixed]
    return note(f"{name}: {'; '.join(faults)}") if faults else ok(name)


def check_sh() -> list[Finding]:
    """Check /bin/sh, which stands between tmux and the agent."""
    try:
        code = subprocess.run(["/bin/sh", "-c", "trap : HUP; exit 3"], stdin=subprocess.DEVNULL, timeout=RUN_S).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        return [problem(f"/bin/sh does not run: {error}", "install a POSIX shell as /bin/sh")]
    if code != 3:
        return [problem(f"/bin/sh -c 'exit 3' ended with {code}", "install a POSIX shell as /bin/sh")]
    return [ok(os.path.realpath("/bin/sh"))]


def check_pidfd() -> list[Finding]:
    """Check pidfds, by which Vigil sees deaths and sends signals."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return [problem(f"pidfd_open does not work: {error}", "use Linux 5.4 or newer; a sandbox may forbid it")]
    return [ok(f"pidfd_open works (Linux {platform.release()})")]


def check_exit_status() -> list[Finding]:
    """Check whether the kernel keeps an exit status after another process has reaped."""
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 137"], {})
    pidfd = os.pidfd_open(pid)
    try:
        start_ticks = process.read_start_ticks(pid) or 0
        os.waitpid(pid, 0)
        status, _ = process.read_wait_status(pidfd, pid, start_ticks)
    finally:
        os.close(pidfd)
    if process.split_status(status) == (137, None):
        return [ok("the kernel keeps exit statuses (PIDFD_GET_INFO)")]
    words = "Linux before 6.15 keeps no exit statuses (PIDFD_GET_INFO): a death may say `signal n or exit 128+n`"
    return [note(f"{words}; never a wrong one")]


def check_subreaper() -> list[Finding]:
    """Check for subreapers: the keeper adopts what its children leave behind."""
    value = ctypes.c_int()
    if ctypes.CDLL(None, use_errno=True).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0) != 0:
        why = os.strerror(ctypes.get_errno())
        return [problem(f"this kernel has no child subreapers ({why}): no keeper can run", "use Linux 3.4 or newer")]
    return [ok("child subreapers work")]


def check_proc() -> list[Finding]:
    """Check /proc, which says who a process is."""
    if process.read_stat(os.getpid()) is None:
        return [problem("/proc is not mounted: no process can be told from another", "mount -t proc proc /proc")]
    try:
        hidden = process.read_stat(1) is None
    except PermissionError:
        hidden = True
    if hidden:
        says = "/proc hides other users' processes (hidepid): a restarted container cannot be told from a running one"
        return [warning(says, "mount /proc without hidepid, or add yourself to its gid= group")]
    return [ok("/proc is mounted and readable")]


def check_memory() -> list[Finding]:
    """Check what tells an out-of-memory death from a kill by hand, best first."""
    if KernelLog().readable:
        return [ok("the kernel's log can be read: a death for want of memory is certain")]
    if Cgroups().version is not None:
        return [note("the kernel's log may not be read: a death for want of memory is told by the counter of its cgroup")]
    if read_oom_kills() is not None:
        return [note("no log of the kernel and no memory cgroups: a death for want of memory is told by the host's counter")]
    return [warning("nothing tells a death for want of memory from a kill by hand", "it will be called killed-by-unknown")]


def check_files(sessions: int = 0) -> list[Finding]:
    """Check the limit of open files; daemon and keeper raise their soft limit to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [judge_files(soft, hard, sessions)]


def judge_files(soft: int, hard: int, sessions: int) -> Finding:
    """Return what a limit of open files means for this many sessions."""
    if hard == resource.RLIM_INFINITY:
        return ok(f"soft {soft}, hard unlimited")
    room = max(0, (hard - FILES_BESIDES) // FILES_PER_SESSION)
    says = f"soft {soft}, hard {hard}: enough for about {room} sessions"
    if room < sessions:
        return problem(f"{says}, and there are {sessions}", "raise the hard limit (ulimit -Hn, or limits.conf)")
    if room < FEW_SESSIONS:
        return warning(says, "raise the hard limit (ulimit -Hn, or limits.conf) if you want more")
    return ok(says)


def check_systemd() -> list[Finding]:
    """Check for a systemd user session, where the keeper gets a scope of its own."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not (shutil.which("systemd-run") and runtime and os.path.exists(os.path.join(runtime, "systemd", "private"))):
        return [
            note("no systemd user session: the keeper stays in the cgroup of whatever starts it, and ends if that is ended")
        ]
    user = os.environ.get("USER", "")
    if user and os.path.exists(f"/var/lib/systemd/linger/{user}"):
        return [ok("the keeper runs in a scope of its own, also after logout")]
    return [note("the keeper runs in a scope of its own; logout ends it unless lingering is on (loginctl enable-linger)")]


def check_agents() -> list[Finding]:
    """Check which agents are installed."""
    found = [name for name in AGENTS if shutil.which(name)]
    if not found:
        return [note(f"none of {', '.join(AGENTS)} is in PATH; any other command can be run")]
    return [ok(f"found {', '.join(found)}")]
