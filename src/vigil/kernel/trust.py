"""Whom a unix socket leads to, asked before a byte is sent: its folder, its listener, its peer. The keeper uses it too.

A tmux client executes what its server says, and a command obeys its daemon: neither may be a stranger.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import time

from vigil.kernel.proc import PROC
from vigil.kernel.process import ENDED, has_ended, is_dying, read_stat
from vigil.kernel.shortage import NO_DESCRIPTORS

SO_PEERPIDFD = 77  # Linux 6.5 and up
CREDENTIALS = struct.Struct("3i")
LOCK_BYTES = 32
FULL_S = 0.005
OPENED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Untrusted(Exception):
    """A socket leads to a stranger; the message is one line for a person."""


class PeerProcess:
    """The process that made a connection, while it lives: its descendants or its pid's next owner are not it."""

    def __init__(self, sock: socket.socket) -> None:
        self.pid, self.uid = read_peer(sock)
        self._pidfd: int | None = None
        self._start_ticks: int | None = None
        try:
            self._pidfd = sock.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                raise  # that says nothing of the process (P7)
            if error.errno == errno.ENOPROTOOPT and self.uid == os.getuid():  # an older kernel: the pid's owner now
                stat_ = read_stat(self.pid)
                self._start_ticks = None if stat_ is None else stat_.start_ticks

    def is_here(self) -> bool:
        """Say whether it lives; not if its pid is another namespace's, so that nothing of it can be told."""
        if self.pid <= 0:
            return False
        if self._pidfd is not None:
            return not has_ended(self._pidfd)
        found = None if self._start_ticks is None else read_stat(self.pid)
        return found is not None and found.start_ticks == self._start_ticks and found.state not in ENDED

    def close(self) -> None:
        """Let go of it: from now on it is not here."""
        if self._pidfd is not None:
            os.close(self._pidfd)
        self._pidfd = self._start_ticks = None


def read_peer(sock: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the other end, as the kernel noted them at connect or listen."""
    pid, uid, _ = CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return pid, uid


def connect_own(path: str, timeout_s: float | None, lock: str | None = None) -> socket.socket:
    """Connect to a process of our user in a private folder of ours; Untrusted if it is another's, OSError if none listens.

    If a process holds `lock`, it must be that one.
    """
    check_private(os.path.dirname(path))
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        _connect(sock, path, timeout_s)
        pid, uid = read_peer(sock)
        _check_uid(path, uid)
        if lock is not None and pid > 0 and (holder := read_locker(lock)) not in (None, pid):
            if is_dying(pid):
                raise ConnectionRefusedError("it is on its way out")
            raise Untrusted(f"pid {pid} listens on {path}, in the place of pid {holder}")
    except BaseException:
        sock.close()
        raise
    return sock


def _connect(sock: socket.socket, path: str, timeout_s: float | None) -> None:
    """Connect, and wait for a place in a full backlog: a socket with a time limit gets an error at once there."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        try:
            return sock.connect(path)
        except BlockingIOError:
            if deadline is not None and time.monotonic() > deadline:
                raise
            time.sleep(FULL_S)


def check_private(folder: str) -> None:
    """Refuse a folder that is a link, another user's, or open to others; a missing one holds no socket."""
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return
    _check_owner(folder, found)
    if found.st_mode & 0o077:
        raise Untrusted(f"{folder} is open to others (mode {found.st_mode & 0o777:o}): chmod 700 it, or remove it")


def check_server(path: str) -> int:
    """Return the listener of a socket on which a tmux client may be started; Untrusted or OSError as `open_server`."""
    fd, pid = open_server(path)
    os.close(fd)
    return pid


def open_server(path: str, server: tuple[int, int] | None = None) -> tuple[int, int]:
    """Return a descriptor of a socket on which a tmux client may be started, and its listener; it never waits.

    Untrusted if the listener is not of our user or, with `server` (pid, start ticks), not that very process. OSError if none
    listens, or its backlog is full. A client that goes by `name_of` the descriptor meets that listener, whatever is renamed.
    """
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check_socket(path, os.fstat(fd))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect(name_of(fd))
            pid, uid = read_peer(sock)
        _check_uid(path, uid)
        if server is not None:
            found = read_stat(pid) if pid == server[0] else None
            if found is None or found.start_ticks != server[1]:
                raise Untrusted(f"{path} leads to pid {pid}, not to its tmux server (pid {server[0]})")
    except BaseException:
        os.close(fd)
        raise
    return fd, pid


def name_of(fd: int) -> str:
    """Return a path of the very file that a descriptor holds, for us and for those who inherit it."""
    return f"{PROC}/self/fd/{fd}"


def _check_socket(path: str, found: os.stat_result) -> None:
    """Refuse a socket that others could put another in place of: its folder is ours, or sticky with our socket in it."""
    folder = os.path.dirname(path)
    own = os.lstat(folder)
    if not stat.S_ISSOCK(found.st_mode):
        raise Untrusted(f"{path} is no socket")
    if stat.S_ISDIR(own.st_mode) and own.st_mode & stat.S_ISVTX and own.st_uid in (0, os.getuid()):
        if found.st_uid != os.getuid():
            raise Untrusted(f"{path} belongs to uid {found.st_uid}")
        return
    _check_owner(folder, own)
    if own.st_mode & 0o022:
        raise Untrusted(f"{folder} may be written by others (mode {own.st_mode & 0o777:o})")


def _check_owner(folder: str, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise Untrusted(f"{folder} is {'a link' if stat.S_ISLNK(found.st_mode) else 'not a folder'}: remove it")
    if found.st_uid != os.getuid():
        raise Untrusted(f"{folder} belongs to uid {found.st_uid}, not to you")


def _check_uid(path: str, uid: int) -> None:
    if uid != os.getuid():
        raise Untrusted(f"a process of uid {uid} listens on {path}: it is not yours")


def read_lock_holder(path: str) -> int | None:
    """Return the pid that holds a file's lock, as the kernel says; where it tells nothing, as the file says."""
    known, said = _read_holder(path)
    return said if known is None else known


def read_locker(path: str) -> int | None:
    """Return the pid that holds a file's lock, by the kernel's word alone; None if none does, or none can be seen."""
    return _read_holder(path)[0]


def _read_holder(path: str) -> tuple[int | None, int | None]:
    """Return the pid that holds a file's lock: by the kernel, and by the file's own text."""
    try:
        fd = os.open(path, OPENED)
    except OSError:
        return None, None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None, None
        text = os.read(fd, LOCK_BYTES).strip()
    finally:
        os.close(fd)
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        with open(f"{PROC}/locks", encoding="ascii", errors="replace") as file:
            holders = [int(words[4]) for line in file if (words := line.split())[1:2] == ["FLOCK"] and words[5:6] == [device]]
    except OSError:
        holders = []
    return (holders[0] if holders else None), (int(text) if text.isdigit() else None)


def runs_program(pid: int, program: str) -> bool:
    """Say whether a process runs exactly this file."""
    try:
        return os.path.samestat(os.stat(f"{PROC}/{pid}/exe"), os.stat(program))
    except OSError:
        return False


def is_below(pid: int, ancestor: int, depth: int = 64) -> bool:
    """Say whether a process descends from another, as far as its living ancestors show."""
    for _ in range(depth):
        found = read_stat(pid) if pid > 1 else None
        if found is None:
            return False
        if found.ppid == ancestor:
            return True
        pid = found.ppid
    return True
