"""The demo's stage: a temporary instance of Vigil, from its folder to its end, whatever happened on it.

It ends no process by name: its own are those that its launches record (pid and start time), and holders of its locks
whose command line names its unique folder."""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vigil.client import Client
from vigil.client.starting import start_daemon
from vigil.errors import VigilError
from vigil.hands import Hands
from vigil.home import home_at
from vigil.keeper import records
from vigil.kernel import durable, process, processes

ASK_S = 30.0  # for the daemon to end all sessions and itself
LINGER_S = 5.0  # for daemon and keeper to go, once asked
KILL_S = 5.0


class DemoStage:
    """An instance in a folder of its own."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="vigil-demo-"))
        self.home = home_at(self._folder / "home")
        self.client = Client(self.home)

    @property
    def work(self) -> Path:
        """Where the agents work."""
        return self._folder / "work"

    def set_up(self) -> None:
        """Start the instance."""
        self.work.mkdir()
        start_daemon(self.home, config=self._folder / "config.toml")  # the file is missing: a demo's crashes go by no route

    def kill_server(self, name: str) -> int | None:
        """SIGKILL a session's recorded tmux server; return its pid, None if it has none now."""
        pid = self.client.session(name)["server_pid"]
        with _pidfd_of(pid) as pidfd:
            if pidfd is None or self.client.session(name)["server_pid"] != pid:
                return None
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return int(pid)

    def clear(self) -> list[str]:
        """End all that runs here and remove the folder; return in words what is left nevertheless."""
        with suppress(Exception):  # whatever it says: what it left is ended below
            Hands("demo").call(self._ask_for_the_end, ASK_S)
        self._wait_for_daemon_and_keeper()
        left = [
            f"a process with pid {pid}"
            for pid in [*self._end_holder("daemon"), *self._end_launches(), *self._end_holder("keeper")]
        ]
        for folder in {self._folder, self.home.run}:
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                left.append(f"the folder {folder}")
        return left

    def _ask_for_the_end(self) -> None:
        with suppress(VigilError):  # without a daemon, the steps below end what it left
            self.client.stop_daemon(kill_sessions=True)

    def _wait_for_daemon_and_keeper(self) -> None:
        deadline = time.monotonic() + LINGER_S
        for lock in ("daemon", "keeper"):
            with self._holder(lock) as (_, pidfd):
                if pidfd is not None:
                    _ends(pidfd, deadline - time.monotonic())

    def _end_holder(self, lock: str) -> list[int]:
        with self._holder(lock) as (pid, pidfd):
            return [pid] if pidfd is not None and not _kill(pidfd) else []

    def _end_launches(self) -> list[int]:
        """Kill the living processes of all launches, and return those that survive."""
        left = []
        for record in self.home.launches.glob("*/born.json"):
            born = durable.read_json(str(record)) or {}
            for role in records.ROLES:
                pid, start_ticks = born.get(role) or (0, 0)
                pidfd = process.open_pidfd(pid, start_ticks) if pid else None
                if pidfd is not None:
                    if not _kill(pidfd):
                        left.append(pid)
                    os.close(pidfd)
        return left

    @contextmanager
    def _holder(self, lock: str) -> Iterator[tuple[int, int | None]]:
        """Yield pid and pidfd of a lock's holder, if it lives and is the stage's own."""
        try:
            pid = int(self.home.lock(lock).read_text())
        except (OSError, ValueError):
            yield 0, None
            return
        with _pidfd_of(pid) as pidfd:
            yield pid, pidfd if pidfd is not None and self._is_own(pid) else None

    def _is_own(self, pid: int) -> bool:
        try:
            return any(os.fsencode(self._folder) in word for word in processes.read_command(pid))
        except OSError:
            return False


@contextmanager
def _pidfd_of(pid: int | None) -> Iterator[int | None]:
    try:
        pidfd = os.pidfd_open(pid) if pid else None
    except ProcessLookupError:
        pidfd = None
    try:
        yield pidfd
    finally:
        if pidfd is not None:
            os.close(pidfd)


def _kill(pidfd: int) -> bool:
    """SIGKILL a process and say whether it is gone."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    return _ends(pidfd, KILL_S)


def _ends(pidfd: int, within_s: float) -> bool:
    return bool(select.select([pidfd], [], [], max(0.0, within_s))[0])
