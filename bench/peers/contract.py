"""What is measured of every supervisor: it is started with so many agents, told of deaths, asked for a list, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path

from bench.harness import Run, send, wait_until
from bench.readings import read_age_s, read_children
from vigil.kernel import process

START_S = 120.0
STOP_S = 30.0


class System(ABC):
    """One supervisor, from its start with some agents to its end."""

    name: str
    label: str
    kills: int  # deaths that are timed
    phase_s: float  # a death falls at random within so much time: its period, where it polls

    def __init__(self, run: Run) -> None:
        self.run = run

    @abstractmethod
    def start(self, count: int) -> None:
        """Start with so many agents, and return when all of them run."""

    @abstractmethod
    def stop(self) -> None:
        """End the supervisor and its agents."""

    @abstractmethod
    def supervisors(self) -> list[int]:
        """Return the processes whose cost is the supervisor's."""

    @abstractmethod
    def subscribe(self) -> None:
        """Begin to listen for deaths."""

    @abstractmethod
    def victims(self) -> list[int]:
        """Return the agents that may be killed now."""

    @abstractmethod
    def told_at_ns(self, pid: int, within_s: float) -> int:
        """Wait until a listener was told of this agent's death and return when (CLOCK_MONOTONIC); TimeoutError if never."""

    @abstractmethod
    def make_whole(self) -> None:
        """Return when there are as many agents as in the beginning."""

    def list_command(self) -> list[str] | None:
        """Return the command that lists all agents; None if there is none."""
        return None

    def environment(self) -> dict[str, str]:
        """Return the environment of that command."""
        return dict(os.environ)


class Peer(System):
    """A supervisor that is one process, whose agents are its children, and which restarts them by itself."""

    least_age_s = 0.0  # an agent must have been up for so long, or its death counts as a failed start

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.folder: Path
        self.process: subprocess.Popen[bytes] | None = None
        self.count = 0
        self.helpers: list[int] = []

    @abstractmethod
    def command(self) -> list[str]:
        """Write the configuration and return what starts the supervisor."""

    def start(self, count: int) -> None:
        """Start the supervisor and wait for its agents."""
        self.count = count
        self.helpers = []
        self.folder = self.run.folder / f"{self.name}-{count}"
        self.folder.mkdir()
        command = self.command()
        with open(self.folder / "output", "wb") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self.started()
        wait_until(lambda: len(self.agents()) == count, START_S, f"start of {count} agents by {self.label}", every_s=0.2)

    def started(self) -> None:
        """Do what comes after the process has begun."""

    def stop(self) -> None:
        """Ask it to end, and end what it leaves behind."""
        if self.process is not None and self.process.poll() is None:
            agents = [(pid, process.read_start_ticks(pid) or 0) for pid in self.agents()]
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            for pid, start_ticks in agents:
                send(pid, start_ticks, signal.SIGKILL)
            wait_until(lambda: not any(process.is_alive(*agent) for agent in agents), STOP_S, f"end of {self.label}")
        self.process = None

    def supervisors(self) -> list[int]:
        """It is one process."""
        assert self.process is not None
        return [self.process.pid]

    def agents(self) -> list[int]:
        """Return its children, but for helpers."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.label} ended: {(self.folder / 'output').read_text('utf-8', 'replace')[-500:]}")
        return [pid for pid in read_children(self.process.pid) if pid not in self.helpers]

    def victims(self) -> list[int]:
        """Return agents that have been up for long enough."""
        return [pid for pid in self.agents() if read_age_s(pid) > self.least_age_s]

    def make_whole(self) -> None:
        """It restarts its agents itself."""
        wait_until(lambda: len(self.agents()) == self.count, START_S, f"a restart by {self.label}")
        wait_until(lambda: bool(self.victims()), START_S, f"a lasting restart by {self.label}")


class Lines:
    """Lines of pid and time from a listener, through a named pipe."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path, 0o600)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # for both: no end while nobody writes
        self._rest = b""

    def told_at_ns(self, pid: int, within_s: float) -> int:
        """Return the time in the line of this pid, once it comes."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                *lines, self._rest = (self._rest + os.read(self._fd, 65536)).split(b"\n")
            except BlockingIOError:
                time.sleep(0.001)
                continue
            for line in lines:
                found, at_ns = map(int, line.split())
                if found == pid:
                    return at_ns
        raise TimeoutError(f"nobody was told of the death of {pid} within {within_s:g} s")

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._fd)


def is_there(pid: int) -> bool:
    """Say whether a process of this pid lives; one that only waits to be reaped does not."""
    stat = process.read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def tool(name: str) -> str:
    """Return a command of the environment that runs us."""
    return str(Path(sys.executable).parent / name)
