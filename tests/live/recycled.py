"""Numbers of dead processes, given to a process or a thread of ours: the kernel hands out the one after ns_last_pid."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping

import pytest

LAST = "/proc/sys/kernel/ns_last_pid"
TRIES_S = 20.0  # others on this host take numbers too
AS_PROCESS = f"""
import os, sys, time
number, until = int(sys.argv[1]), time.monotonic() + {TRIES_S}
while time.monotonic() < until:
    with open({LAST!r}, "w") as file:
        file.write(str(number - 1))
    child = os.fork()
    if child == 0:
        if os.getpid() == number:
            os.execvp(sys.argv[2], sys.argv[2:])
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if child == number:
        sys.exit(os.waitstatus_to_exitcode(status))
sys.exit(99)
"""
TAKEN = 99


def run_as(number: int, command: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command whose process has this number."""
    _check_allowed()
    words = [sys.executable, "-c", AS_PROCESS, str(number), *command]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=90)
    if done.returncode == TAKEN:
        pytest.skip(f"somebody else has the number {number}")
    return done


@contextlib.contextmanager
def process_with(number: int) -> Iterator[None]:
    """A process of ours has this number, and leads a session."""
    _check_allowed()
    words = [sys.executable, "-c", AS_PROCESS, str(number), "setsid", "sleep", "1000"]
    begun, until = subprocess.Popen(words), time.monotonic() + TRIES_S
    try:
        while not _sleeps(number):
            if begun.poll() is not None or time.monotonic() > until:
                pytest.skip(f"somebody else has the number {number}")
            time.sleep(0.01)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            if _sleeps(number):
                os.kill(number, signal.SIGKILL)
        begun.kill()
        begun.wait()


def _sleeps(number: int) -> bool:
    try:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            return file.read() == b"sleep\x001000\x00"
    except OSError:
        return False


@contextlib.contextmanager
def thread_with(number: int) -> Iterator[None]:
    """A thread of ours has this number."""
    _check_allowed()
    over, until = threading.Event(), time.monotonic() + TRIES_S
    while not _begin(number, over):
        if time.monotonic() > until:
            pytest.skip(f"somebody else has the number {number}")
    try:
        yield
    finally:
        over.set()


def _begin(number: int, over: threading.Event) -> bool:
    begun = threading.Event()

    def live() -> None:
        begun.set()
        if threading.get_native_id() == number:
            over.wait()

    with open(LAST, "w") as file:
        file.write(str(number - 1))
    worker = threading.Thread(target=live, daemon=True)
    worker.start()
    begun.wait()
    return worker.native_id == number


def _check_allowed() -> None:
    try:
        with open(LAST, "r+") as file:
            file.write(file.read())
    except OSError as error:
        pytest.skip(f"numbers cannot be chosen here: {error}")
