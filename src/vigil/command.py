"""One command with a deadline: its answer, or that it was abandoned, with nothing left behind.

It ends all that the command leaves running, also after an answer. /bin/sh executes the program, so an exec that hangs
(a disk that is gone) hangs a process we can abandon, never the caller: our own spawn would wait for it, and hold the
interpreter's lock meanwhile.
"""

from __future__ import annotations

import os
import secrets
import select
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from vigil.kernel.process import open_pidfd, read_start_ticks, read_stat
from vigil.kernel.processes import read_environ, read_pids, value_of
from vigil.kernel.shortage import RESERVE

GRACE_S = 0.2  # for the last words of processes that outlive the leader
KILL_S = 0.5
PAUSE_S = 0.01
CHUNK_BYTES = 1 << 16  # a pipe's default size
ERRORS_BYTES = 1 << 14
TOKEN = "VIGIL_PROBE"
EXECUTE = 'exec "$@"'
EXECUTE_IN = 'cd "$1" || exit 126; shift; exec "$@"'
NOT_STARTED = 126


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What a command said, or why it was abandoned."""

    status: int | None  # exit code, negative for a signal; None if abandoned
    output: bytes  # the first `limit_bytes` of its standard output
    errors: bytes  # the end of its standard error, which says why
    abandoned: str = ""
    lingering: bool = False  # a process of it could not be ended in time, and is still there


def run_command(
    argv: Sequence[str],
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    limit_bytes: int = 1 << 20,
    cwd: str | None = None,
    pass_fds: tuple[int, ...] = (),
    insists: bool = False,
) -> CommandAnswer:
    """Run a command and return its answer, about half a second after its deadline at most.

    It blocks: for worker threads. A missing or not executable program answers 127 or 126, as in a shell. One that insists
    waits for a process or a descriptor, up to its deadline.
    """
    assert argv
    reap_lingering()
    deadline = time.monotonic() + deadline_s
    try:
        until = deadline if insists else 0.0
        running = RESERVE.insist(until, _start, argv, os.environ if env is None else env, stdin, limit_bytes, cwd, pass_fds)
    except OSError as error:
        return CommandAnswer(NOT_STARTED, b"", str(error).encode())
    try:
        with _lock:
            _running.append(running)
        running.converse(deadline)
    finally:
        with _lock:
            _running.remove(running)
        running.end()
    return running.answer(deadline_s)


def end_running() -> None:
    """End every running command of this process; their callers get an answer soon."""
    with _lock:
        for running in _running:
            _kill_group(running.process)


_lock = threading.Lock()
_running: list[_Running] = []
_lingering: list[subprocess.Popen[bytes]] = []


def let_linger(process: subprocess.Popen[bytes]) -> None:
    """Take over a child that SIGKILL has not ended yet, and reap it when it ends."""
    with _lock:
        _lingering.append(process)


def reap_lingering() -> None:
    """Reap children that have ended meanwhile; every `run_command` does so first."""
    with _lock:
        _lingering[:] = [process for process in _lingering if process.poll() is None]


def lingering() -> int:
    """Return how many killed children are still there."""
    with _lock:
        return len(_lingering)


@dataclass(slots=True, eq=False)
class _Running:
    """One running command: its processes, its pipes, and what went through them."""

    process: subprocess.Popen[bytes]
    pidfd: int
    start_ticks: int
    tether: int
    token: str
    unsaid: memoryview
    limit_bytes: int
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    ended: bool = False  # the leader, within the deadline
    speaking: int = 2  # how many of output and errors are still open
    left: bool = False  # a process could not be ended
    status: int | None = None

    def converse(self, deadline: float) -> None:
        """Feed the command and read from it until it is over, or its time is."""
        with selectors.PollSelector() as waiting:
            self._register(waiting)
            until = deadline
            while not self._is_over():
                for key, _ in waiting.select(max(0.0, until - time.monotonic())):
                    if key.data(key.fd):
                        continue
                    waiting.unregister(key.fileobj)
                    if key.fd == self.pidfd:
                        until = min(deadline, time.monotonic() + GRACE_S)
                if time.monotonic() >= until:
                    return

    def end(self) -> None:
        """End what is left of the command, reap its leader and close its pipes."""
        _kill_group(self.process)
        if not (self._is_over() and _is_closed(self.tether)):
            self.left = not self._end_members()
        self._reap()
        _close_pipes(self.process)
        os.close(self.pidfd)
        os.close(self.tether)

    def answer(self, deadline_s: float) -> CommandAnswer:
        """Return what became of the command."""
        status, abandoned = self.status, ""
        if not self.ended:
            status, abandoned = None, f"no answer in {deadline_s:g} s"
        elif status is None:
            abandoned = "its exit status was lost"
        return CommandAnswer(status, bytes(self.output), bytes(self.errors), abandoned, self.left)

    def _register(self, waiting: selectors.BaseSelector) -> None:
        """Wait for its end and its pipes; each handler says whether there is more to wait for."""
        waiting.register(self.pidfd, selectors.EVENT_READ, self._note_end)
        for pipe, event, handle in (
            (self.process.stdout, selectors.EVENT_READ, self._hear_output),
            (self.process.stderr, selectors.EVENT_READ, self._hear_errors),
            (self.process.stdin, selectors.EVENT_WRITE, self._say),
        ):
            if pipe is not None:
                waiting.register(pipe, event, handle)

    def _is_over(self) -> bool:
        return self.ended and self.speaking == 0

    def _note_end(self, _: int) -> bool:
        self.ended = True
        return False

    def _hear_output(self, fd: int) -> bool:
        data = self._hear(fd)
        self.output += data[: self.limit_bytes - len(self.output)]
        return bool(data)

    def _hear_errors(self, fd: int) -> bool:
        data = self._hear(fd)
        self.errors += data
        del self.errors[:-ERRORS_BYTES]
        return bool(data)

    def _hear(self, fd: int) -> bytes:
        data = os.read(fd, CHUNK_BYTES)
        if not data:
            self.speaking -= 1
        return data

    def _say(self, fd: int) -> bool:
        try:
            self.unsaid = self.unsaid[os.write(fd, self.unsaid[:CHUNK_BYTES]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # the reader is gone
            self.unsaid = self.unsaid[:0]
        if self.unsaid:
            return True
        assert self.process.stdin is not None
        self.process.stdin.close()  # the command sees the end of its input
        return False

    def _end_members(self) -> bool:
        """Kill until nothing is left, repeatedly because they may fork; say whether that succeeded in time."""
        until = time.monotonic() + KILL_S
        while True:
            late = time.monotonic() >= until  # asked before the look: if we are late ourselves, we still look once
            members = list(self._read_members())
            for pid, start_ticks in members:
                _kill(pid, start_ticks)
            if not members and _is_closed(self.tether):
                return True
            if late:
                return False
            time.sleep(PAUSE_S)
            _kill_group(self.process)

    def _read_members(self) -> Iterator[tuple[int, int]]:
        """Yield the command's living processes: by group or session, or by the token if they left both."""
        number = self.process.pid if _is_unreaped(self.process) else None
        for pid in _read_pids():
            try:
                stat = read_stat(pid)
                if stat is None or stat.start_ticks < self.start_ticks or (stat.state in "ZX" and stat.threads <= 1):
                    continue
                if number in (stat.pgrp, stat.sid) or self._bears_token(pid):
                    yield pid, stat.start_ticks
            except OSError:  # it ended meanwhile, or may not be read
                continue

    def _bears_token(self, pid: int) -> bool:
        return value_of(f"{TOKEN}=".encode(), read_environ(pid)) == self.token.encode()

    def _reap(self) -> None:
        try:
            pid, status = os.waitpid(self.process.pid, os.WNOHANG)
        except ChildProcessError:
            self.process.returncode = 0  # nothing is left to wait for
            return
        if pid == 0:
            let_linger(self.process)
            return
        self.status = self.process.returncode = os.waitstatus_to_exitcode(status)


def _start(
    argv: Sequence[str], env: Mapping[str, str], stdin: bytes, limit_bytes: int, cwd: str | None, pass_fds: tuple[int, ...]
) -> _Running:
    """Start a command; OSError if descriptors or memory are short."""
    token = secrets.token_hex(16)
    # All that the command starts inherits the writing end of the tether: it stays open while one of them lives.
    tether, held = os.pipe()
    with ExitStack() as undo:
        undo.callback(os.close, tether)
        try:
            process = _spawn(argv, {**env, TOKEN: token}, bool(stdin), cwd, (held, *pass_fds))
        finally:
            os.close(held)
        undo.callback(_give_up, process)
        start_ticks = read_start_ticks(process.pid) or 0
        pidfd = os.pidfd_open(process.pid)
        undo.pop_all()
    return _Running(process, pidfd, start_ticks, tether, token, memoryview(stdin), limit_bytes)


def _spawn(
    argv: Sequence[str], env: Mapping[str, str], fed: bool, cwd: str | None, held: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    script = [EXECUTE, "vigil"] if cwd is None else [EXECUTE_IN, "vigil", os.path.abspath(cwd)]
    process = subprocess.Popen(
        ["/bin/sh", "-c", *script, *argv],
        stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=env,
        start_new_session=True,
        pass_fds=held,
    )
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
    return process


def _give_up(process: subprocess.Popen[bytes]) -> None:
    _kill_group(process)
    let_linger(process)
    _close_pipes(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        if _is_unreaped(process):
            os.killpg(process.pid, signal.SIGKILL)
    except PermissionError:  # all of it now belongs to another user
        pass


def _is_unreaped(process: subprocess.Popen[bytes]) -> bool:
    """Say whether the leader is still our child: then its pid, group and session are its own (P9)."""
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # where SIGCHLD is ignored, the kernel reaps
        return False
    return True


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _read_pids() -> list[int]:
    try:
        return read_pids()
    except OSError:  # no descriptor is left: the tether still says whether somebody lives
        return []


def _kill(pid: int, start_ticks: int) -> None:
    try:
        pidfd = open_pidfd(pid, start_ticks)
        if pidfd is None:
            return
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
    except OSError:  # it ended meanwhile, or now belongs to another user
        pass


def _is_closed(tether: int) -> bool:
    """Say whether every process has closed the other end."""
    poll = select.poll()
    poll.register(tether, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
