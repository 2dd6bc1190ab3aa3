"""Findings about a daemon and a keeper that live and cannot be reached: their sockets are lost, or another's.

They make a lost socket anew by themselves; a mend ends one that does not, by its pidfd, and starts another. Sessions run on.
"""

from __future__ import annotations

import os
import select
import signal
import time
from functools import partial

from vigil.client.living import LOOK_S, LivingDaemon, end_daemon, wait_for_answer
from vigil.client.starting import start_daemon
from vigil.doctor.finding import Finding, problem
from vigil.doctor.patient import Patient
from vigil.doctor.processes import wait_for_keeper
from vigil.home import Home
from vigil.kernel import process
from vigil.kernel.trust import read_locker
from vigil.words import few

END_S = 10.0
SHOWN = 3
ANEW = "sessions run on, and it is started anew"


def deaf_daemon(home: Home, daemon: LivingDaemon) -> Finding:
    """Return what is said of a daemon whose socket is lost, and did not come back."""
    if daemon.stopped:
        return stopped(daemon.pid)

    def mend() -> str:
        end_daemon(home, daemon)
        start_daemon(home)
        return f"ended the daemon that could not be reached (pid {daemon.pid}), and started it anew"

    says = f"pid {daemon.pid} lives, but {home.api_socket} is lost, and it does not make it anew: see {home.log}"
    return problem(says, f"vigil doctor --fix ends it: {ANEW}", mend)


def taken_socket(home: Home, daemon: int, listener: int) -> Finding:
    """Return what is said of a process that listens in the daemon's place."""
    says = f"pid {listener} listens on {home.api_socket}, in the place of the daemon (pid {daemon})"
    todo = "see what it is; vigil doctor --fix removes its socket, and the daemon makes its own anew"
    return problem(says, todo, partial(_remove_socket, home))


def _remove_socket(home: Home) -> str:
    home.api_socket.unlink(missing_ok=True)
    back = wait_for_answer(home)
    return "removed the other's socket" + ("; the daemon has made its own anew" if back else "")


def deaf_keeper(patient: Patient, pid: int) -> Finding:
    """Return what is said of a keeper whose socket is lost, and did not come back."""
    found, home = process.read_stat(pid), patient.home
    if found is not None and found.state in "Tt":
        return stopped(pid)
    says = f"pid {pid} lives, but {home.keeper_socket} is lost, and it does not make it anew"
    why = f"see {home.log / 'keeper.log'}; one of a version before this cannot"
    readers = [one.session for one in patient.living if (home.launch(one.id) / "stdin.fifo").exists()]
    if readers:
        todo = f"stop {few(readers, SHOWN)}: it holds their input open, which would end with it; then vigil doctor --fix"
        return problem(f"{says} ({why})", todo)
    ticks = 0 if found is None else found.start_ticks
    return problem(f"{says} ({why})", f"vigil doctor --fix ends it: {ANEW}", partial(_replace_keeper, home, pid, ticks))


def _replace_keeper(home: Home, pid: int, start_ticks: int) -> str:
    pidfd = process.open_pidfd(pid, start_ticks)
    if pidfd is not None:
        try:
            if read_locker(str(home.lock("keeper"))) == pid:
                signal.pidfd_send_signal(pidfd, signal.SIGTERM)
            if not select.select([pidfd], [], [], END_S)[0]:
                return f"told the keeper (pid {pid}) to end, but it still runs: kill -9 {pid} ends it, and sessions run on"
        except ProcessLookupError:
            pass
        finally:
            os.close(pidfd)
    start_daemon(home)  # it starts another
    deadline = time.monotonic() + END_S
    while wait_for_keeper(home) is None and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return f"ended the keeper that could not be reached (pid {pid}); the daemon starts another"


def stopped(pid: int) -> Finding:
    """Return what is said of a process that a signal has stopped."""
    return problem(f"pid {pid} is stopped", f"kill -CONT {pid}")
