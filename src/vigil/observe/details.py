"""Details: what /proc says of one process beyond its stat: where it waits, what it has open, what it read and wrote.

Every value may be unknown, because nobody may look, the kernel lacks it or the process ended meanwhile: then it is None, and
`lacking` says why. Nothing here raises. No environment is read, and commands are without their secrets.
"""

from __future__ import annotations

import os
import re
import stat as modes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from vigil.redact import redact_command
from vigil.text import decode, one_line

T = TypeVar("T")
FLAGS = os.O_RDONLY | os.O_CLOEXEC
CMDLINE_BYTES = 4096
WORDS = 64
STATUS_BYTES = 8192
DESCRIPTORS = 4096  # that are looked at; how many there are is counted beyond that
PEAK = re.compile(rb"\nVmHWM:\s*(\d+) kB")
TRACER = re.compile(rb"\nTracerPid:\s*(\d+)")
SLEPT = re.compile(rb"\nvoluntary_ctxt_switches:\s*(\d+)")
IO = re.compile(rb"(rchar|wchar|read_bytes|write_bytes): (\d+)")
NAMED = re.compile(r"(socket|pipe|anon_inode):\[?(.*?)\]?$")
TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console", "/dev/ptmx")
# Where a process sleeps that reads from a pipe, a terminal or a socket pair, as kernels have called it.
READING = frozenset(
    {"pipe_read", "anon_pipe_read", "pipe_wait", "pipe_wait_readable", "n_tty_read", "wait_woken", "tty_read"}
    | {"unix_stream_read_generic", "unix_stream_data_wait", "__skb_wait_for_more_packets"}
)


class Pipe(NamedTuple):
    """One end of a pipe that a process has open."""

    fd: int
    inode: int
    reads: bool
    writes: bool


class Io(NamedTuple):
    """Bytes so far: all that went through read and write, and what of it reached a disk."""

    read: int
    written: int
    disk_read: int
    disk_written: int


class Turns(NamedTuple):
    """How the first thread of a process got its CPU so far."""

    ran_s: float
    waited_s: float  # it was ready to run, and others ran
    slept: int  # times that it gave its CPU back by itself


@dataclass(frozen=True, slots=True)
class OpenFile:
    """What a process has open."""

    count: int
    kinds: dict[str, int]
    sockets: tuple[int, ...]  # inodes
    pipes: tuple[Pipe, ...]
    stdin: str  # the kind of descriptor 0; empty: it has none


@dataclass(frozen=True, slots=True)
class Detail:
    """One process, looked at closely."""

    command: tuple[str, ...] | None = None
    wchan: str | None = None
    peak_rss_bytes: int | None = None
    traced_by: int | None = None  # 0: nobody
    io: Io | None = None
    turns: Turns | None = None
    open: OpenFile | None = None
    network: str | None = None  # its network namespace
    lacking: dict[str, str] = field(default_factory=dict)  # what is None, and why


def read_detail(pid: int, proc: str = "/proc", thread: int = 0) -> Detail:
    """Look at one process closely, by a thread of it that lives if its first one ended."""
    lacking: dict[str, str] = {}
    place = f"{proc}/{pid}/task/{thread}" if thread else f"{proc}/{pid}"
    status = _try("memory", lacking, lambda: _read(f"{place}/status", STATUS_BYTES))
    return Detail(
        _try("command", lacking, lambda: _command(_read(f"{place}/cmdline", CMDLINE_BYTES))),
        _try("wchan", lacking, lambda: _read(f"{place}/wchan", 128).decode("ascii", "replace").partition(".")[0]),
        None if status is None else _found(PEAK, status, 1024),
        None if status is None else _found(TRACER, status, 1),
        _try("io", lacking, lambda: _io(_read(f"{proc}/{pid}/io", 512))),
        _try("turns", lacking, lambda: _turns(status or b"", _read(f"{place}/schedstat", 128))),
        _try("descriptors", lacking, lambda: _open(f"{place}/fd")),
        _try("network", lacking, lambda: os.readlink(f"{place}/ns/net")),
        lacking,
    )


def read_io(pid: int, proc: str = "/proc") -> Io | None:
    """Read what a process read and wrote so far; None if nobody may know."""
    return _try("io", {}, lambda: _io(_read(f"{proc}/{pid}/io", 512)))


def read_turns(pid: int, proc: str = "/proc", thread: int = 0) -> Turns | None:
    """Read how a process got its CPU so far; None if the kernel does not tell."""
    place = f"{proc}/{pid}/task/{thread}" if thread else f"{proc}/{pid}"
    return _try("turns", {}, lambda: _turns(_read(f"{place}/status", STATUS_BYTES), _read(f"{place}/schedstat", 128)))


def read_network(proc: str = "/proc") -> str | None:
    """Read our own network namespace."""
    return _try("network", {}, lambda: os.readlink(f"{proc}/self/ns/net"))


def _try(what: str, lacking: dict[str, str], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except OSError as error:
        lacking[what] = error.strerror or str(error)
    except ValueError as error:
        lacking[what] = str(error)
    return None


def _read(path: str, most_bytes: int) -> bytes:
    fd = os.open(path, FLAGS)
    try:
        return os.read(fd, most_bytes)
    finally:
        os.close(fd)


def _command(line: bytes) -> tuple[str, ...]:
    """Return a command without its secrets; a process that wrote over its own is shown as it wants to be."""
    words = decode(line.rstrip(b"\0")).split("\0")[:WORDS]
    return tuple(map(one_line, redact_command(words)))


def _found(pattern: re.Pattern[bytes], text: bytes, times: int) -> int | None:
    match = pattern.search(text)
    return None if match is None else int(match[1]) * times


def _io(text: bytes) -> Io:
    found = {name: int(value) for name, value in IO.findall(text)}
    if len(found) < len(Io._fields):
        raise ValueError("the kernel counts none")
    return Io(found[b"rchar"], found[b"wchar"], found[b"read_bytes"], found[b"write_bytes"])


def _turns(status: bytes, schedstat: bytes) -> Turns:
    ran, waited, _ = map(int, schedstat.split())
    slept = SLEPT.search(status)
    if slept is None:
        raise ValueError("the kernel counts none")
    return Turns(ran / 1e9, waited / 1e9, int(slept[1]))


def _open(folder: str) -> OpenFile:
    names = os.listdir(folder)
    kinds: dict[str, int] = {}
    sockets: list[int] = []
    pipes: list[Pipe] = []
    stdin = ""
    for name in names[:DESCRIPTORS]:
        path = f"{folder}/{name}"
        try:
            target = os.readlink(path)
            kind = kind_of(target)
            if kind == "socket":
                sockets.append(_inode(target))
            elif kind == "pipe":
                mode = os.lstat(path).st_mode
                pipes.append(Pipe(int(name), _inode(target), bool(mode & modes.S_IRUSR), bool(mode & modes.S_IWUSR)))
        except (OSError, ValueError):
            continue  # it was closed meanwhile
        kinds[kind] = kinds.get(kind, 0) + 1
        if name == "0":
            stdin = kind
    return OpenFile(len(names), kinds, tuple(dict.fromkeys(sockets)), tuple(pipes), stdin)


def kind_of(target: str) -> str:
    """Return what a descriptor leads to, in one word."""
    match = NAMED.match(target)
    if match is not None:
        return match[2] if match[1] == "anon_inode" else match[1]
    if target.startswith(TERMINALS):
        return "terminal"
    return "device" if target.startswith("/dev/") else "file"


def _inode(target: str) -> int:
    return int(target.partition("[")[2].rstrip("]"))
