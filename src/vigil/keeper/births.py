"""Births: from the order to launch until the agent's process is known, watched and on record. A headless launch is one spawn.

In tmux a shim sends the agent's pid by a pipe, and becomes the agent once its birth is on disk; not without that."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from vigil.keeper.protocol import BEGAN, ORDER, Answer, Born, LaunchOrder, Process, RefusedAnswer, Watch
from vigil.keeper.records import Unwritten
from vigil.keeper.samples import Sample, Samples
from vigil.keeper.spawn import Program, spawn
from vigil.keeper.watch import Watcher
from vigil.keeper.wire import Malformed, as_json, read
from vigil.kernel import durable, process
from vigil.kernel.processes import read_children
from vigil.kernel.shortage import check_descriptors, is_shortage, tells_shortage
from vigil.kernel.theirs import open_theirs

OUTPUT_BYTES = 4096
DESCRIPTORS = 8  # a birth in tmux opens six
FIRST_INSIDE = re.compile(rb'"child-pid": *(\d+)')  # as bwrap tells it
Respond = Callable[[Answer], None]
Json = dict[str, Any]


class Birth:
    def __init__(self, launch: str, folder: str, answer: Respond, client: int, output_fd: int, pid_fd: int, go_fd: int) -> None:
        self.launch = launch
        self.folder = folder
        self.answer = answer
        self.client = client
        self.output_fd = output_fd
        self.pid_fd = pid_fd
        self.go_fd = go_fd
        self.output = b""
        self.heard = b""  # from the shim, or from bwrap and the agent's process inside
        self.root: Process | None = None  # bwrap, around a headless agent
        self.status: int | None = None
        self.agent: Process | None = None
        self.armed: Sample | None = None


class Births:
    def __init__(
        self, epoll: select.epoll, watcher: Watcher, samples: Samples, nofile: tuple[int, int], unwritten: Unwritten
    ) -> None:
        self._epoll = epoll
        self._watcher = watcher
        self._samples = samples
        self._nofile = nofile
        self._unwritten = unwritten
        self._by_fd: dict[int, Birth] = {}
        self._by_client: dict[int, Birth] = {}
        self.inputs: dict[str, int] = {}  # by launch: held open for writing

    def begin(self, launch: str, folder: str, answer: Respond) -> None:
        """Launch what the folder's launch.json says; answer now or when the agent is known."""
        check_descriptors(DESCRIPTORS)  # first: a birth that stops half-way would leave some open
        found = durable.read_json(os.path.join(folder, ORDER))
        if found is None:
            raise ValueError(f"{folder}/launch.json cannot be read")
        try:
            order = read(LaunchOrder, found)
        except Malformed as error:
            raise Malformed(f"{folder}/launch.json: {error}") from None
        try:
            (self._begin_tmux if order.runtime == "tmux" else self._begin_headless)(launch, folder, order, answer)
        except OSError:
            _remove_fifos(folder)
            raise

    def owns(self, fd: int) -> bool:
        """Say whether an epoll event is about a birth."""
        return fd in self._by_fd

    def readable(self, fd: int) -> None:
        """Take in what a client printed or a shim said."""
        birth = self._by_fd[fd]
        data = os.read(fd, OUTPUT_BYTES)
        if fd == birth.output_fd:
            birth.output = (birth.output + data)[:OUTPUT_BYTES]
            if not data:
                self._close(birth, "output_fd")
                self._settle(birth)
        else:
            birth.heard = (birth.heard + data)[-OUTPUT_BYTES:]
            pid = _agent_in(birth.heard)
            if pid is not None:
                self._meet_agent(birth, pid)

    def client_ended(self) -> None:
        """See which clients are done, after children were reaped."""
        for pid, birth in list(self._by_client.items()):
            status = self._watcher.status_of_lost(pid)
            if status is not None:
                birth.status = status
                del self._by_client[pid]
                self._settle(birth)

    def hold_inputs(self, inputs: dict[str, int]) -> None:
        """Hold open the inputs of the keeper before us."""
        for launch, fd in inputs.items():
            os.set_inheritable(fd, False)
            self.inputs[launch] = fd

    def close_input(self, launch: str) -> bool:
        """Let an agent read the end of its input; say whether we held one."""
        fd = self.inputs.pop(launch, None)
        if fd is None:
            return False
        os.close(fd)
        return True

    def abandon(self, launch: str) -> None:
        """Forget a birth that was given up, and close its agent's input."""
        for birth in {id(birth): birth for birth in self._by_fd.values() if birth.launch == launch}.values():
            self._finish(birth)
        self.close_input(launch)

    def _begin_headless(self, launch: str, folder: str, order: LaunchOrder, answer: Respond) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        streams: list[int] = []
        fifos: tuple[int, int] | None = None
        try:
            streams.append(self._open_stdin(launch, folder, order.stdin))
            for name in ("stdout.jsonl", "stderr.log"):
                streams.append(open_theirs(os.path.join(folder, name), flags)[0])
            fifos = _open_fifos(folder) if order.sandboxed else None
            claims = (os.path.join(folder, ORDER), "" if fifos else os.path.join(folder, BEGAN))
            stdin, stdout, stderr = streams
            pid = spawn(Program(order.argv, order.env, order.cwd, stdin, stdout, stderr, *self._inherited(order), *claims))
        except OSError:
            for fd in fifos or ():
                os.close(fd)
            self.close_input(launch)
            _remove(folder, BEGAN)
            raise
        finally:
            for fd in streams:
                os.close(fd)
        start_ticks = process.read_start_ticks(pid) or 0  # our child: it stays until we reap it
        if fifos:
            birth = Birth(launch, folder, answer, pid, -1, *fifos)
            birth.root = (pid, start_ticks)
            self._await(birth)
            return
        with suppress(OSError):  # for people
            durable.write_whole(os.path.join(folder, "pid"), f"{pid}\n".encode())
        born = Born((pid, start_ticks))
        # It runs already: a record that the disk refuses is written later, and the agent lives on.
        self._unwritten.record(*_record_of(folder, born, self._samples.arm(launch, folder, pid)))
        answer(born)
        self._watcher.watch(Watch(launch, folder, "agent", pid, start_ticks))

    def _open_stdin(self, launch: str, folder: str, kind: str | None) -> int:
        if kind != "fifo":
            return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        path = os.path.join(folder, "stdin.fifo")
        if not os.path.exists(path):
            os.mkfifo(path, 0o600)
        # We hold it open for writing: so neither a writer's nor the daemon's end closes the agent's input.
        self.inputs[launch] = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def _begin_tmux(self, launch: str, folder: str, order: LaunchOrder, answer: Respond) -> None:
        # For the shim to write to: making a file takes long, and would delay the death's report.
        os.close(open_theirs(os.path.join(folder, "shim-exit"), os.O_WRONLY | os.O_CREAT)[0])
        pid_fd, go_fd = _open_fifos(folder)
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        output_fd, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            claims = (os.path.join(folder, ORDER),)
            client = spawn(Program(order.argv, order.env, "/", null, writer, writer, *self._inherited(order), *claims))
        except OSError:
            for fd in (pid_fd, go_fd, output_fd):
                os.close(fd)
            raise
        finally:
            os.close(null)
            os.close(writer)
        self._await(Birth(launch, folder, answer, client, output_fd, pid_fd, go_fd))

    def _await(self, birth: Birth) -> None:
        self._watcher.status_of_lost(birth.client)  # an old status under this pid is not its own
        self._by_client[birth.client] = birth
        for fd in (birth.output_fd, birth.pid_fd):
            if fd >= 0:
                self._by_fd[fd] = birth
                self._epoll.register(fd, select.EPOLLIN)

    def _inherited(self, order: LaunchOrder) -> tuple[tuple[int, int], int, int | None, str, bool]:
        return self._nofile, order.umask, order.mark, order.cgroup, order.limited

    def _meet_agent(self, birth: Birth, pid: int) -> None:
        """Hold the pidfd of the process that will become the agent."""
        start_ticks = process.read_start_ticks(pid)
        if start_ticks is None:
            birth.answer(RefusedAnswer("the process that was to become the agent ended before that"))
            self._finish(birth)
            return
        birth.agent = (pid, start_ticks)
        birth.armed = self._samples.arm(birth.launch, birth.folder, pid)
        self._watcher.watch(Watch(birth.launch, birth.folder, "agent", pid, start_ticks))
        self._close(birth, "pid_fd")
        self._settle(birth)

    def _settle(self, birth: Birth) -> None:
        """Answer once all is known: the client is done, and it failed or the agent spoke."""
        if birth.root is not None:
            self._settle_sandboxed(birth, birth.root)
            return
        if birth.status is None or birth.output_fd >= 0:
            return
        words = birth.output.decode("utf-8", "replace").split()
        if birth.status != 0 or len(words) != 3:
            text = birth.output.decode("utf-8", "replace").strip() or f"tmux ended with status {birth.status}"
            birth.answer(RefusedAnswer(text, tells_shortage(text)))
            self._finish(birth)
        elif birth.agent is not None:
            server, root = (self._watch_runtime(birth, role, int(words[n])) for n, role in enumerate(("server", "root")))
            self._let_begin(birth, Born(birth.agent, root, server, pane=words[2]))

    def _settle_sandboxed(self, birth: Birth, root: Process) -> None:
        if birth.agent is not None:
            self._watcher.watch(Watch(birth.launch, birth.folder, "root", *root))
            self._let_begin(birth, Born(birth.agent, root))
        elif birth.status is not None:
            self.abandon(birth.launch)
            birth.answer(RefusedAnswer(f"bwrap ended with status {birth.status} before the agent began; stderr.log says why"))

    def _let_begin(self, birth: Birth, born: Born) -> None:
        """Record a birth, and only then let its agent begin; one that cannot be recorded is refused."""
        try:
            durable.record_json(*_record_of(birth.folder, born, birth.armed))
            if os.path.isdir(os.path.join(birth.folder, "spool")):  # inside its sandbox it cannot say so itself
                durable.write_whole(os.path.join(birth.folder, BEGAN), b"")
            os.write(birth.go_fd, b"go\n")  # it has its end open: what we write stays until it reads
        except OSError as error:
            birth.answer(RefusedAnswer(f"its birth cannot be recorded: {error.strerror}", is_shortage(error)))
        else:
            birth.answer(born)
        finally:
            self._finish(birth)

    def _watch_runtime(self, birth: Birth, role: str, pid: int) -> Process:
        start_ticks = process.read_start_ticks(pid) or 0
        self._watcher.watch(Watch(birth.launch, birth.folder, role, pid, start_ticks))
        return pid, start_ticks

    def _finish(self, birth: Birth) -> None:
        for name in ("output_fd", "pid_fd", "go_fd"):
            self._close(birth, name)
        self._by_client.pop(birth.client, None)
        _remove_fifos(birth.folder)

    def _close(self, birth: Birth, name: str) -> None:
        fd = getattr(birth, name)
        if fd < 0:
            return
        if self._by_fd.pop(fd, None) is not None:
            self._epoll.unregister(fd)
        os.close(fd)
        setattr(birth, name, -1)


def _open_fifos(folder: str) -> tuple[int, int]:
    """Make and open the two pipes of a shim: for its pid, and for our word to go on."""
    for name in ("pid.fifo", "go.fifo"):
        os.mkfifo(os.path.join(folder, name), 0o600)
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC  # for both: one side alone would wait or fail
    return os.open(os.path.join(folder, "pid.fifo"), flags), os.open(os.path.join(folder, "go.fifo"), flags)


def _remove_fifos(folder: str) -> None:
    for name in ("pid.fifo", "go.fifo"):
        _remove(folder, name)


def _agent_in(heard: bytes) -> int | None:
    """Return the agent's pid: the shim's own, or the one process below bwrap's first one inside, once that says ready."""
    if heard.strip().isdigit():
        return int(heard)
    first = FIRST_INSIDE.search(heard)
    if first is None or not heard.endswith(b"ready\n"):
        return None
    return next(iter(read_children(int(first[1]), threads=1)), None)


def _record_of(folder: str, born: Born, armed: Sample | None) -> tuple[str, Json]:
    """Return where and what is recorded of a birth, with its boot and host: a later daemon finds it there."""
    return os.path.join(folder, "born.json"), {**as_json(born), "boot": process.read_boot(), "armed": armed}


def _remove(folder: str, name: str) -> None:
    try:
        os.unlink(os.path.join(folder, name))
    except FileNotFoundError:
        pass
