"""The living daemon, by its lock: also one that cannot be reached. Callers wait for its socket, or end it.

Where the kernel does not show a lock's holder (docs/security.md), no daemon is found here; its socket alone tells.
"""

from __future__ import annotations

import os
import select
import signal
import time
from dataclasses import dataclass

from vigil.errors import Unreachable
from vigil.home import Home
from vigil.kernel.process import TICKS_A_SECOND, is_dying, open_pidfd, read_stat
from vigil.kernel.trust import Untrusted, check_private, connect_own, read_locker, read_peer

ANSWERS_S = 5.0
SOCKET_S = 5.0  # a lost socket is back within that (P15)
START_S = 30.0  # so long a daemon may take to come up
STOPPED_S = 1.0  # one that is stopped longer does nothing by itself
END_S = 30.0
LOOK_S = 0.02


@dataclass(frozen=True)
class LivingDaemon:
    """The process that holds the daemon's lock."""

    pid: int
    start_ticks: int
    age_s: float
    stopped: bool


class DeafDaemon(Unreachable):
    """A daemon lives and cannot be reached; the message names it and the way out."""

    def __init__(self, daemon: LivingDaemon, words: str) -> None:
        super().__init__(words)
        self.daemon = daemon


def find_daemon(home: Home) -> LivingDaemon | None:
    """Return who holds the daemon's lock; None if no process does, or only one on its way out."""
    pid = read_locker(str(home.lock("daemon")))
    found = None if pid is None else read_stat(pid)
    if found is None or is_dying(found.pid):
        return None
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - found.start_ticks / TICKS_A_SECOND
    return LivingDaemon(found.pid, found.start_ticks, age_s, found.state in "Tt")


def answers(home: Home) -> bool:
    """Say whether a living daemon listens on the home's socket; a killed one still does for a moment.

    Unreachable if a stranger could, or does, listen there.
    """
    try:
        with connect_own(str(home.api_socket), ANSWERS_S, str(home.lock("daemon"))) as sock:
            return not is_dying(read_peer(sock)[0])
    except OSError:
        return False
    except Untrusted as error:
        raise unsafe(error) from None


def wait_for_answer(home: Home, start_s: float = START_S, socket_s: float = SOCKET_S) -> bool:
    """Say whether a daemon answers; wait for one that lives and starts, or makes its lost socket anew.

    DeafDaemon if that does not come in time; Unreachable as `answers`.
    """
    begun_at = runs_at = time.monotonic()
    while not answers(home):
        daemon, now = find_daemon(home), time.monotonic()
        if daemon is None:
            return False
        if not daemon.stopped:
            runs_at = now
        waited_s = now - begun_at
        given_up = waited_s > start_s or (waited_s > socket_s and daemon.age_s > start_s)  # a young one may be starting
        if given_up or now - runs_at > STOPPED_S:
            raise DeafDaemon(daemon, _deaf_words(home, daemon, waited_s))
        time.sleep(LOOK_S)
    return True


def _deaf_words(home: Home, daemon: LivingDaemon, waited_s: float) -> str:
    last = "vigil daemon stop ends it: sessions run on, and the next command starts it anew"
    if daemon.stopped:
        says = f"the daemon (pid {daemon.pid}) is stopped, and {home.api_socket} is lost"
        return f"{says}: kill -CONT {daemon.pid} lets it go on; {last}"
    return f"the daemon (pid {daemon.pid}) runs, but {home.api_socket} was not there within {waited_s:.0f} s; {last}"


def end_daemon(home: Home, daemon: LivingDaemon) -> None:
    """End a daemon that cannot be asked, as `vigil daemon stop` would: sessions run on. Unreachable if it does not end."""
    pidfd = open_pidfd(daemon.pid, daemon.start_ticks)
    if pidfd is None:
        return
    try:
        if read_locker(str(home.lock("daemon"))) == daemon.pid:
            for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped one sees its TERM only when it goes on
                signal.pidfd_send_signal(pidfd, number)
        if not select.select([pidfd], [], [], END_S)[0]:
            todo = f"kill -9 {daemon.pid} ends it, and sessions run on"
            raise Unreachable(f"the daemon (pid {daemon.pid}) was told to stop, but still runs: {todo}")
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)


def check_run(home: Home) -> None:
    """Refuse a folder of sockets in which a stranger could listen."""
    try:
        check_private(str(home.run))
    except Untrusted as error:
        raise unsafe(error) from None


def unsafe(error: Untrusted) -> Unreachable:
    """Return what a person is told of a stranger's folder or socket."""
    return Unreachable(f"{error}. Nothing was sent; vigil doctor says more, and another VIGIL_HOME has other sockets")
