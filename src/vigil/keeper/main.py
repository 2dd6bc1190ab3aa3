"""The keeper's loop: one epoll over the daemon's requests, children and pidfds; it never restarts or reaps by itself.

One per home (a lock that survives an exec); it ends itself 10 s after it has nothing to watch and no daemon."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import assert_never

from vigil.keeper import protocol, wire
from vigil.keeper.births import Births
from vigil.keeper.kills import Kills
from vigil.keeper.listener import BACKLOG, KeeperSocket
from vigil.keeper.peers import Peer
from vigil.keeper.records import Unwritten
from vigil.keeper.samples import Samples
from vigil.keeper.snapshot import Snapshots
from vigil.keeper.watch import Watcher
from vigil.kernel import cgroups, descent
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.host import HostFacts
from vigil.kernel.kernel_log import KernelLog
from vigil.kernel.own_socket import OwnSocket
from vigil.kernel.shortage import RESERVE, is_shortage
from vigil.kernel.trust import read_lock_holder

LINGER_S = 10.0
RESERVED = 8  # descriptors: a record needs two, a peer two, a look at /proc one
LOG_BYTES = 1 << 20
PR_SET_CHILD_SUBREAPER = 36
OUTBOX_BYTES = 8 << 20  # a daemon that leaves this much unread is not listening


class Keeper:
    def __init__(self, run: str, lock_path: str, log: str, own: OwnSocket, lock: int, nofile: tuple[int, int]) -> None:
        self._run = run
        self._lock_path = lock_path
        self._daemon_lock = os.path.join(os.path.dirname(lock_path), "daemon.lock")
        self._log_path = log
        self._lock = lock
        self._nofile = nofile
        self._epoll = select.epoll()
        self._peers: dict[int, Peer] = {}
        self._listener = KeeperSocket(self._epoll, own, self._is_daemon, self._admit, self._log)
        host, groups, log_ = HostFacts(), Cgroups(), KernelLog()
        kills = Kills(log_, groups)
        self._samples = Samples(host, groups, log_, kills)
        self._snapshots = Snapshots(self._samples, host, groups, log_, self._broadcast)
        self._unwritten = Unwritten()
        explained = (self._samples, kills, self._snapshots)
        self._watcher = Watcher(self._epoll, self._broadcast, *explained, self._unwritten)
        self._births = Births(self._epoll, self._watcher, self._samples, nofile, self._unwritten)
        # These have work to do later.
        self._parts = (self._watcher, self._unwritten, self._samples, self._snapshots, self._listener)
        self._idle_since: float | None = time.monotonic()
        self._quit = False

    def run(self, handed: wire.Message) -> None:
        """Keep watch, also over what was handed to us, until there is nothing to watch and no daemon."""
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._epoll.register(wake_read, select.EPOLLIN)
        self._guard(self._take_up, handed)
        self._watcher.reap()  # what ended before: its signal is long gone
        while not self._done():
            for fd, _ in self._epoll.poll(self._wait_s()):
                self._guard(self._dispatch, fd, wake_read)
            for part in self._parts:
                self._guard(part.catch_up)
            self._note_idle()
            RESERVE.refill()
        self._guard(self._snapshots.finish)

    def _take_up(self, handed: wire.Message) -> None:
        """Go on with what the last keeper watched and held open."""
        handover = wire.read(protocol.Handover, handed)
        for watch in handover.watches:
            self._guard(self._watcher.watch, watch)
        self._births.hold_inputs(handover.inputs)

    def _guard(self, work: Callable[..., None], *about: object) -> None:
        """Do something that may fail: one bad event never ends the watch over all others."""
        try:
            work(*about)
        except BlockingIOError:
            pass  # an event of a descriptor whose number another has now
        except Exception as error:
            self._log(f"{work.__name__}{about} failed: {type(error).__name__}: {error}")

    def _wait_s(self) -> float | None:
        lingers = None if self._idle_since is None else max(0.0, self._idle_since + LINGER_S - time.monotonic())
        waits = (part.wait_s() for part in self._parts)
        return min((s for s in (lingers, *waits) if s is not None), default=None)

    def _dispatch(self, fd: int, wake_read: int) -> None:
        if self._watcher.owns(fd):
            self._watcher.ended(fd)
        elif self._births.owns(fd):
            self._births.readable(fd)
        elif fd in self._peers:
            self._hear(self._peers[fd])
        elif self._listener.owns(fd):
            self._listener.readable(fd)
        elif fd == wake_read:
            os.read(wake_read, 4096)
            self._watcher.reap()
            self._births.client_ended()

    def _done(self) -> bool:
        lingered = self._idle_since is not None and time.monotonic() - self._idle_since >= LINGER_S
        return self._quit or lingered

    def _note_idle(self) -> None:
        idle = not self._peers and not len(self._watcher) and not len(self._snapshots)
        if not idle:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()

    # Daemons

    def _admit(self, peer: Peer) -> None:
        if peer.process.uid != os.getuid():
            peer.close()
            return
        self._unwritten.write_again()  # a new daemon reads what is on disk
        self._peers[peer.sock.fileno()] = peer
        self._epoll.register(peer.sock, select.EPOLLIN)
        for word in self._watcher.owed() if self._is_daemon(peer) else ():
            self._send(peer, wire.encode_word(word))

    def _hear(self, peer: Peer) -> None:
        self._flush(peer)
        try:
            data = peer.sock.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._hang_up(peer)
            return
        try:
            lines = peer.lines.feed(data)
        except wire.Malformed as error:
            self._send(peer, wire.encode_answer(0, protocol.RefusedAnswer(str(error))))
            self._hang_up(peer)
            return
        for line in lines:
            self._obey(peer, line)

    def _obey(self, peer: Peer, line: bytes) -> None:
        number = 0

        def answer(given: protocol.Answer) -> None:
            self._send(peer, wire.encode_answer(number, given))

        try:
            message = wire.decode(line)
            number = wire.number_in(message, "id")
            request = wire.read_request(message)
            if not isinstance(request, protocol.PingRequest) and not self._is_daemon(peer):
                raise PermissionError("the keeper obeys only the daemon of its home, which holds its lock")
            self._carry_out(request, answer)
        except Exception as error:  # the daemon that asked is told
            what = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            answer(protocol.RefusedAnswer(f"{why or type(error).__name__}{what}", is_shortage(error)))

    def _is_daemon(self, peer: Peer) -> bool:
        """Say whether a peer holds the daemon's lock, as the kernel knows; an agent could only after the daemon's end."""
        peer.is_daemon = peer.process.is_here() and (peer.is_daemon or read_lock_holder(self._daemon_lock) == peer.process.pid)
        return peer.is_daemon

    def _carry_out(self, request: protocol.Request, answer: Callable[[protocol.Answer], None]) -> None:
        match request:
            case protocol.PingRequest():
                answer(protocol.PingAnswer(protocol.VERSION, os.getpid(), len(self._watcher)))
            case protocol.SpawnRequest(launch, folder):
                self._births.begin(launch, folder, answer)
            case protocol.WatchRequest(watches):
                for watch in watches:
                    self._watcher.watch(watch)
                answer(protocol.DoneAnswer())
            case protocol.ForgetRequest(launch, removing):
                answer(protocol.ForgetAnswer(self._forget(launch, removing)))
            case protocol.CloseInputRequest(launch):
                was_open = self._births.close_input(launch)
                answer(protocol.DoneAnswer() if was_open else protocol.RefusedAnswer("the keeper does not hold its input open"))
            case protocol.QuitRequest():
                answer(protocol.DoneAnswer())
                self._quit = True
            case protocol.UpgradeRequest():
                self._upgrade(answer)
            case _:
                assert_never(request)

    def _forget(self, launch: str, removing: bool) -> int | None:
        self._births.abandon(launch)
        peak_kb = self._watcher.forget(launch)
        if removing:
            self._snapshots.cancel(launch)
        return peak_kb

    def _upgrade(self, answer: Callable[[protocol.Answer], None]) -> None:
        """Exec the installed keeper in place: same pid, children, lock and socket."""
        self._guard(self._snapshots.finish)
        self._unwritten.write_again()
        if self._unwritten:
            raise ValueError(f"{len(self._unwritten)} records wait for the disk: the keeper that holds them stays as it is")
        inputs = self._births.inputs
        state = os.memfd_create("keeper-state", 0)
        os.write(state, wire.encode(wire.as_json(protocol.Handover(self._watcher.watches(), inputs))))
        os.lseek(state, 0, os.SEEK_SET)
        answer(protocol.DoneAnswer())
        kept = (self._lock, self._listener.fileno(), *inputs.values())
        for fd in kept:
            os.set_inheritable(fd, True)
        handed = f"{self._lock},{self._listener.fileno()},{state}"
        arguments = [self._run, self._lock_path, self._log_path, str(self._nofile[0]), handed]
        try:
            os.execv(sys.executable, [*_self_argv(), *arguments])
        except OSError:  # we go on: no agent may inherit what is ours
            os.close(state)
            for fd in kept:
                os.set_inheritable(fd, False)
            raise

    def _broadcast(self, word: protocol.Word) -> None:
        for peer in [peer for peer in self._peers.values() if peer.is_daemon]:
            self._send(peer, wire.encode_word(word))

    def _send(self, peer: Peer, line: bytes) -> None:
        peer.outbox += line
        self._flush(peer)

    def _flush(self, peer: Peer) -> None:
        try:
            while peer.outbox:
                sent = peer.sock.send(peer.outbox)
                peer.outbox = peer.outbox[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self._hang_up(peer)
            return
        if len(peer.outbox) > OUTBOX_BYTES:
            self._hang_up(peer)
            return
        events = select.EPOLLIN | (select.EPOLLOUT if peer.outbox else 0)
        self._epoll.modify(peer.sock, events)

    def _hang_up(self, peer: Peer) -> None:
        if self._peers.pop(peer.sock.fileno(), None) is not None:
            self._epoll.unregister(peer.sock)
        peer.close()

    def _log(self, text: str) -> None:
        with contextlib.suppress(OSError):
            if os.path.exists(self._log_path) and os.path.getsize(self._log_path) > LOG_BYTES:
                os.replace(self._log_path, self._log_path + ".1")
            with open(self._log_path, "a", encoding="utf-8") as file:
                file.write(f"{time.time():.3f} {text!r}\n")


def main(argv: list[str]) -> int:
    """Become the keeper of a run folder: RUN LOCK LOG NOFILE [LOCK,LISTENER,STATE].

    Only one keeper holds the file LOCK. NOFILE is the children's soft limit of open files; the keeper takes the hard limit."""
    run, lock_path, log, soft, *handed = argv
    descent.leave()
    cgroups.leave()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    RESERVE.hold(RESERVED)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        print("keeper: this kernel has no child subreapers", file=sys.stderr)
        return 1
    listener: socket.socket | None
    if handed:
        lock, listener, state = _take_over(handed[0])
    else:
        lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0  # there is one already
        length = os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        os.ftruncate(lock, length)
        listener, state = None, {"watches": []}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    own = OwnSocket(os.path.join(run, "keeper.sock"), (lock_path, lock), BACKLOG, listener)
    Keeper(run, lock_path, log, own, lock, (int(soft), hard)).run(state)
    return 0


def _take_over(handed: str) -> tuple[int, socket.socket, wire.Message]:
    lock, listener_fd, state_fd = map(int, handed.split(","))
    for fd in (lock, listener_fd):
        os.set_inheritable(fd, False)
    with os.fdopen(state_fd, "rb") as file:
        state = json.loads(file.read())
    return lock, socket.socket(fileno=listener_fd), state


def _self_argv() -> list[str]:
    return [sys.executable, "-E", "-s", "-S", os.path.join(os.path.dirname(__file__), "__main__.py")]
