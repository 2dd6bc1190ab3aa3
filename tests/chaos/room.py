"""Room: own pids and mounts for one run, so that pids can be recycled, disks filled, and nothing outlives us.

The first process in it only reaps. When it ends, the kernel ends everybody else in the room; when we die, so does it."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

INSIDE = "--inside"
PR_SET_PDEATHSIG = 1
PID_MAX = Path("/proc/sys/kernel/pid_max")
PIDS = 5000  # they come round within minutes


def can_enter() -> bool:
    return os.geteuid() == 0 and shutil.which("unshare") is not None


def enter(words: list[str]) -> int:
    """Run ourselves in a room of our own and return how that ended."""
    argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # those inside get it too, and end in order
    process = subprocess.Popen([*argv, sys.executable, "-m", "tests.chaos", *words, INSIDE], preexec_fn=_end_with_parent)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return process.wait()
    finally:
        process.kill()


def be_first(work: Callable[[], int]) -> int:
    """Do the work in a child and reap whoever is left to us; return the child's exit code."""
    try:
        PID_MAX.write_text(str(PIDS))
    except OSError:
        pass  # an older kernel has one for all rooms
    child = os.fork()
    if child == 0:
        code = 1
        signal.signal(signal.SIGINT, signal.default_int_handler)  # who started us ignores it
        try:
            code = work()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
