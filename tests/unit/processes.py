"""Real processes for tests of sensors: started in a session of their own, ended by pid when the test is over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from tests.unit.builders import make_launch
from vigil.core.model.launch import Launch, ProcessId
from vigil.kernel.process import read_boot, read_start_ticks
from vigil.observe.trees import Tokens, scan_launch, tree_of

T = TypeVar("T")
SOON_S = 20.0


class Agent:
    """A process that plays an agent: reads lines from us, and prints lines that we wait for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid
        self.launch = launch_of(process.pid)

    def say(self, line: str = "") -> None:
        """Write a line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def heard(self) -> str:
        """Return the next line it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")


@contextlib.contextmanager
def started(*command: str, env: Mapping[str, str] | None = None) -> Iterator[Agent]:
    """Start an agent; at the end all of its launch are ended, by pid."""
    token = f"t{os.getpid()}-{time.monotonic_ns()}"
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "VIGIL_LAUNCH": token, **(env or {})},
    )
    agent = Agent(process)
    agent.launch = launch_of(process.pid, token)
    try:
        yield agent
    finally:
        tokens = Tokens()
        for stat in tree_of(agent.launch, scan_launch(agent.launch, tokens), tokens).members:
            if read_start_ticks(stat.pid) == stat.start_ticks:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(stat.pid, signal.SIGKILL)
        process.wait(SOON_S)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


@contextlib.contextmanager
def started_python(script: str) -> Iterator[Agent]:
    """Start an agent written in Python."""
    with started(sys.executable, "-c", script) as agent:
        yield agent


def launch_of(pid: int, launch_id: str = "s1-1") -> Launch:
    """Return the launch whose agent a process is."""
    ticks = read_start_ticks(pid)
    assert ticks is not None
    return make_launch(id=launch_id, process=ProcessId(pid, ticks, read_boot()), root=None, server=None)


def until(read: Callable[[], T], holds: Callable[[T], bool]) -> T:
    """Read until something holds, and return that reading."""
    deadline = time.monotonic() + SOON_S
    while True:
        found = read()
        if holds(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


@contextlib.contextmanager
def a_thread() -> Iterator[int]:
    """Yield the number of a thread of ours, which is not its process's first."""
    begun, over = threading.Event(), threading.Event()

    def live() -> None:
        begun.set()
        over.wait(SOON_S)

    worker = threading.Thread(target=live)
    worker.start()
    assert begun.wait(SOON_S)
    assert worker.native_id is not None
    try:
        yield worker.native_id
    finally:
        over.set()
        worker.join()
