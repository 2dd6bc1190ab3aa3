"""Spawning: fork and exec of one child, so that the keeper is its parent and its subreaper.

Standard library only, and never `subprocess`: that reaps on its own and would steal statuses. An exec that fails is told to
the caller through a close-on-exec pipe, so a spawn either is the program or is an error.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RESET_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ)


@dataclass(frozen=True)
class Program:
    """What to exec, and in what surroundings."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: int
    stdout: int
    stderr: int
    nofile: tuple[int, int]


def spawn(program: Program) -> int:
    """Start a program as the leader of its own session and return its pid; OSError if it could not be executed."""
    told, tell = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
        if pid == 0:
            _become(program, tell)
        os.close(tell)
        tell = -1
        failed = os.read(told, 64)
    finally:
        os.close(told)
        if tell >= 0:
            os.close(tell)
    if failed:
        os.waitpid(pid, 0)
        number, _, what = failed.decode().partition(" ")
        raise OSError(int(number), os.strerror(int(number)), what)
    return pid


def _become(program: Program, tell: int) -> None:
    """In the child: become the program, or say why not and end."""
    what = "chdir"
    try:
        os.setsid()
        for number in RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        resource.setrlimit(resource.RLIMIT_NOFILE, program.nofile)
        os.umask(0o022)
        os.chdir(program.cwd)
        what = "exec"
        for target, fd in enumerate((program.stdin, program.stdout, program.stderr)):
            os.dup2(fd, target, inheritable=True)  # the sources are never 0, 1 or 2: the keeper keeps those open
        os.execvpe(program.argv[0], list(program.argv), dict(program.env))
    except OSError as error:
        os.write(tell, f"{error.errno} {what}".encode())
    finally:
        os._exit(127)
