"""Descent: a number that all processes below a launch inherit, also with an empty environment and a session of their own.

It is the soft limit of file locks: no kernel since 2.4.25 obeys it, fork and exec hand it on, and /proc shows it."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

from vigil.kernel.host import number, read_bytes
from vigil.kernel.proc import folder_of

LOCKS = 10  # RLIMIT_LOCKS, which Python does not name
LINE = b"Max file locks"
LAUNCH_BITS = 40
INSTANCE_BITS = 22  # together below the numbers that mean "no limit"


def mark_of(spool: str, launch: str) -> int:
    """Return the number of a launch's processes: its first bits are the instance's, known by its spool."""
    return _instance(spool) << LAUNCH_BITS | _bits(launch, LAUNCH_BITS)


def instance_of(spool: str) -> str:
    """Return the name of an instance among its host's cgroups."""
    return f"{_bits(spool, 48):012x}"


def is_ours(mark: int | None, spool: str) -> bool:
    """Say whether a number is of this instance, of whatever launch."""
    return mark is not None and mark >> LAUNCH_BITS == _instance(spool)


def read_mark(pid: int) -> int | None:
    """Read the number that a process inherited; None if it bears none, or is gone."""
    _, found, rest = read_bytes(f"{folder_of(pid)}/limits").partition(LINE)
    return number(rest.split(maxsplit=1)[0]) if found else None


@contextlib.contextmanager
def marking(mark: int | None) -> Iterator[None]:
    """Bear a number for a moment, for a child to inherit; a lowered hard limit leaves no room for one."""
    before = resource.getrlimit(LOCKS)
    if mark is not None:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(LOCKS, (mark, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(LOCKS, before)


def leave() -> None:
    """Bear no number any more: the daemon or the keeper may have been started by an agent."""
    resource.setrlimit(LOCKS, (resource.getrlimit(LOCKS)[1],) * 2)


def _instance(spool: str) -> int:
    return _bits(spool, INSTANCE_BITS) | 1 << INSTANCE_BITS - 1  # never small: a limit that a person sets is


def _bits(text: str, bits: int) -> int:
    import hashlib  # only the daemon needs it: it would cost the keeper 2 MB

    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 64 - bits
