"""Details: a close look at one process: where it waits, what it has open, what it read and wrote. No secrets.

Nothing raises: an unknown value is None, and `lacking` says whether we may not look, the kernel lacks it or it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from vigil.kernel.descriptors import OpenFile, read_network, read_open
from vigil.kernel.proc import PROC
from vigil.kernel.processes import read_command
from vigil.kernel.usage import Io, Turns, read_io, read_status, read_turns, read_wchan
from vigil.redact import redact_command
from vigil.text import decode, one_line

T = TypeVar("T")
WORDS = 64
# Where a process sleeps that reads from a pipe, a terminal or a socket pair, in the words of several kernels.
READING = frozenset(
    {"pipe_read", "anon_pipe_read", "pipe_wait", "pipe_wait_readable", "n_tty_read", "wait_woken", "tty_read"}
    | {"unix_stream_read_generic", "unix_stream_data_wait", "__skb_wait_for_more_packets"}
)


@dataclass(frozen=True, slots=True)
class Detail:
    command: tuple[str, ...] | None = None
    wchan: str | None = None
    peak_rss_bytes: int | None = None
    traced_by: int | None = None  # 0: by no process
    io: Io | None = None
    turns: Turns | None = None
    open: OpenFile | None = None
    network: str | None = None  # its network namespace
    lacking: dict[str, str] = field(default_factory=dict)  # what is None, and why


def read_detail(pid: int, proc: str = PROC, thread: int = 0) -> Detail:
    """Look closely at one process, by a living thread if its first one ended."""
    lacking: dict[str, str] = {}
    status = _try("memory", lacking, lambda: read_status(pid, proc, thread))
    peak_kb = None if status is None else status.peak_kb
    return Detail(
        _try("command", lacking, lambda: _without_secrets(read_command(pid, proc, thread))),
        _try("wchan", lacking, lambda: read_wchan(pid, proc, thread)),
        None if peak_kb is None else peak_kb * 1024,
        None if status is None else status.traced_by,
        _try("io", lacking, lambda: read_io(pid, proc)),
        _try("turns", lacking, lambda: read_turns(pid, None if status is None else status.slept, proc, thread)),
        _try("descriptors", lacking, lambda: read_open(pid, proc, thread)),
        _try("network", lacking, lambda: read_network(pid, proc, thread)),
        lacking,
    )


def read_moved(pid: int, proc: str = PROC) -> Io | None:
    """Read what a process read and wrote so far; None if the kernel does not tell."""
    return _try("io", {}, lambda: read_io(pid, proc))


def read_turns_of(pid: int, proc: str = PROC, thread: int = 0) -> Turns | None:
    """Read how a process got its CPU so far; None if the kernel does not tell."""
    return _try("turns", {}, lambda: read_turns(pid, read_status(pid, proc, thread).slept, proc, thread))


def read_own_network(proc: str = PROC) -> str | None:
    """Read our own network namespace; None if the kernel does not tell."""
    return _try("network", {}, lambda: read_network(proc=proc))


def _try(what: str, lacking: dict[str, str], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except OSError as error:
        lacking[what] = error.strerror or str(error)
    except ValueError as error:
        lacking[what] = str(error)
    return None


def _without_secrets(words: list[bytes]) -> tuple[str, ...]:
    """Return a command as it is shown, or as its process rewrote it."""
    return tuple(map(one_line, redact_command([decode(word) for word in words[:WORDS]])))
