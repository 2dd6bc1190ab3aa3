"""Spawning: one child by posix_spawn. Never `subprocess`, which steals statuses; no `fork`: it costs more than the program.

What posix_spawn cannot set, a child inherits: the keeper has one thread, so it may change folder, mask, limits and cgroup."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from vigil.kernel import cgroups, descent

# What we ignore, or were made to: a shell has its background jobs ignore two.
RESET_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
ELSEWHERE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)  # another folder of the path may have it


class Program(NamedTuple):
    """What to exec, and in what surroundings."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: int
    stdout: int
    stderr: int
    nofile: tuple[int, int]
    umask: int = 0o022
    mark: int | None = None  # inherited by all that descends from it
    cgroup: str = ""  # the folder of its own
    limited: bool = False  # that cgroup limits it: without it there is no launch
    order: str = ""  # a file that its child finds, or does not exec: an order that was withdrawn is never carried out
    began: str = ""  # a file that its child makes just before it execs


def spawn(program: Program) -> int:
    """Start a program as its own session's leader; return its pid, or raise OSError."""
    try:
        with _surroundings(program):
            return _exec(program)
    except cgroups.CgroupRefused:
        if program.limited:
            raise
        return spawn(program._replace(cgroup=""))


def _exec(program: Program) -> int:
    """Try every place of the path, as a shell does; "may not be executed" is told before "not found"."""
    streams = (program.stdin, program.stdout, program.stderr)
    # The sources are never 0, 1 or 2: the keeper keeps those open.
    actions: list[tuple[object, ...]] = [
        *_claims(program),
        *((os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(streams)),
    ]
    failed = errno.ENOENT
    for path in _places(program.argv[0], program.env):
        try:
            os.stat(path)  # before a child makes `began` and finds nothing to exec
            return os.posix_spawn(
                path,
                list(program.argv),
                dict(program.env),
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=RESET_SIGNALS,
            )
        except OSError as error:
            if error.errno not in ELSEWHERE:
                raise OSError(error.errno, error.strerror, "exec") from None
            failed = errno.EACCES if error.errno == errno.EACCES else failed
    raise OSError(failed, os.strerror(failed), "exec")


def _claims(program: Program) -> Iterator[tuple[object, ...]]:
    """Yield what the child opens in place of its input, before it has that: so the kernel decides which came first."""
    if program.order:
        yield os.POSIX_SPAWN_OPEN, 0, program.order, os.O_RDONLY, 0
    if program.began:
        yield os.POSIX_SPAWN_OPEN, 0, program.began, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600


def _places(name: str, env: Mapping[str, str]) -> list[str]:
    return [name] if "/" in name else [os.path.join(folder, name) for folder in os.get_exec_path(env)]


@contextmanager
def _surroundings(program: Program) -> Iterator[None]:
    """Take on the program's folder, mask, limits and cgroup for a moment."""
    try:
        os.chdir(program.cwd)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "chdir") from None
    mask = os.umask(program.umask)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, program.nofile)
        with descent.marking(program.mark), cgroups.inside(program.cgroup):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        os.umask(mask)
        os.chdir("/")
