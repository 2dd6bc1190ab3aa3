"""One Vigil instance in a folder of its own, used as a person would: through the command, and through its API."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.live import warm
from vigil.client.client import Client
from vigil.daemon.base.hook_key import HookKey
from vigil.errors import VigilError
from vigil.home import home_at
from vigil.kernel import process

VIGIL = [sys.executable, "-m", "vigil.cli"]
DEADLINE_S = 20.0
LOOK_S, RARELY_S = 0.01, 0.05
T = TypeVar("T")
Json = dict[str, Any]


class Instance:
    """A home, its commands, its processes."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path(tempfile.mkdtemp(prefix="vg-", dir="/tmp"))
        self.home = home_at(self.path)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("VIGIL_")}
        self.env["VIGIL_HOME"] = str(self.path)
        self.env["VIGIL_CONFIG"] = str(self.config)
        self.client = Client(self.home)

    # As a person

    def run_cli(
        self, *words: str, env: dict[str, str] | None = None, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and return how it ended."""
        return subprocess.run(
            [*VIGIL, *words],
            env=self.env | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout_s,
        )

    def ok(self, *words: str) -> str:
        """Run a command that must succeed and return what it printed."""
        done = self.run_cli(*words)
        assert done.returncode == 0, f"vigil {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *words: str) -> Any:
        """Run a command with `-o json` and return its value."""
        return json.loads(self.ok(*words, "-o", "json"))

    # Through the API

    def start(self) -> None:
        """Start the daemon."""
        warm.start(self.home, self.config)

    @property
    def config(self) -> Path:
        """The instance's configuration file; there is none unless a test writes it."""
        return self.path / "config.toml"

    def run(self, name: str, *command: str, **options: Any) -> Json:
        """Declare a session and launch it."""
        self.start()
        wanted = {"name": name, "command": list(command), "cwd": "/", "env": dict(self.env), **options}
        return self.client.run(wanted)

    def get(self, name: str) -> Json:
        """Return a session."""
        return self.client.session(name)

    def deaths(self, name: str) -> list[Json]:
        """Return a session's death records."""
        return self.client.deaths(name)

    def wait_state(self, name: str, *states: str, within_s: float = DEADLINE_S) -> Json:
        """Wait until a session is in one of these states."""
        return wait_for(lambda: self._in_state(name, states), within_s, f"{name} to be {' or '.join(states)}")

    def wait_death(self, name: str, count: int = 1, within_s: float = DEADLINE_S) -> Json:
        """Wait for a session's death record and return the newest."""
        wait_for(lambda: len(self.deaths(name)) >= count, within_s, f"{count} deaths of {name}")
        found = self.deaths(name)
        assert len(found) == count, found
        return found[0]

    def wait_event(self, kind: str, within_s: float = DEADLINE_S) -> Json:
        """Wait for an event of a kind and return it."""
        return wait_for(lambda: next((e for e in self.client.events() if e["kind"] == kind), None), within_s, f"event {kind}")

    def token(self, launch: str) -> str:
        """Return the token of a launch's hooks, as its agent has it."""
        return HookKey(self.home.hook_key, 0.0).token_of(launch)

    def tmux(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run tmux on a session's own server, as somebody else would."""
        socket = str(self.home.server_socket(self.get(name)["launch"]))
        return subprocess.run(["tmux", "-u", "-S", socket, *words], capture_output=True, text=True, timeout=10)

    # Daemon and keeper

    @property
    def daemon_pid(self) -> int:
        """The daemon, by its lock."""
        return int(self.home.lock("daemon").read_text())

    @property
    def keeper_pid(self) -> int:
        """The keeper, by its lock."""
        return int(self.home.lock("keeper").read_text())

    def kill_daemon(self) -> None:
        """SIGKILL the daemon and wait until it is gone."""
        kill(self.daemon_pid, signal.SIGKILL)

    def kill_keeper(self) -> None:
        """SIGKILL the keeper and wait until it is gone."""
        kill(self.keeper_pid, signal.SIGKILL)

    def destroy(self) -> None:
        """End everything and check that nothing is left."""
        if self.home.lock("keeper").exists():
            resume(self.keeper_pid)
        try:
            if self.home.run.exists():
                self.run_cli("daemon", "stop", "--kill-sessions")
                wait_for(lambda: not self.processes(), DEADLINE_S, "all processes of the instance to end", self.processes)
        finally:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.path, ignore_errors=True)
            if self.home.run != self.path / "run":
                shutil.rmtree(self.home.run, ignore_errors=True)

    def processes(self) -> list[int]:
        """Return every living process that names this home in its command line or environment."""
        token = os.fsencode(self.path)
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            stat = process.read_stat(int(entry))
            if (
                stat is not None
                and stat.state not in "ZX"
                and (_holds(entry, "cmdline", token) or _holds(entry, "environ", token))
            ):
                found.append(int(entry))
        return found

    def _in_state(self, name: str, states: tuple[str, ...]) -> Json | None:
        session = self.get(name)
        return session if session["state"] in states else None


def wait_for(look: Callable[[], T | None], within_s: float, what: str, report: Callable[[], object] | None = None) -> T:
    """Wait until `look` returns something true, and return it; who waits for long looks less often."""
    began = time.monotonic()
    while True:
        try:
            found = look()
        except VigilError:
            found = None
        if found:
            return found
        waited_s = time.monotonic() - began
        if waited_s > within_s:
            raise AssertionError(f"waited {within_s:g} s for {what}" + (f": {report()}" if report else ""))
        time.sleep(min(max(LOOK_S, waited_s / 10), RARELY_S))


def kill(pid: int, number: int) -> None:
    """Send a deadly signal to one process and wait until it has ended."""
    stat = process.read_stat(pid)
    assert stat is not None
    os.kill(pid, number)
    wait_for(lambda: not process.is_alive(pid, stat.start_ticks), DEADLINE_S, f"pid {pid} to end")


def resume(pid: int) -> None:
    """Let a stopped process go on, if it is there."""
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


def alive(pid: int) -> bool:
    """Say whether a pid is a living process."""
    stat = process.read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def command_of(pid: int) -> bytes:
    """Return a process's command line as the kernel has it; nothing if it is gone."""
    return _read(str(pid), "cmdline")


def is_of_session(pid: int, name: str) -> bool:
    """Say whether a process carries a session's name in its environment."""
    return f"VIGIL_SESSION={name}".encode() in _read(str(pid), "environ").split(b"\0")


def _holds(entry: str, name: str, token: bytes) -> bool:
    return token in _read(entry, name)


def _read(entry: str, name: str) -> bytes:
    try:
        with open(f"/proc/{entry}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
