"""The daemon's link to the keeper: starts one if there is none, asks with deadlines, listens.

A keeper that lives but does not answer, or whose socket is lost, is wedged: that is an event, not a reason for a second one
(its lock forbids it)."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, overload

from vigil.daemon.base.keeper_start import start_keeper
from vigil.daemon.base.log import log
from vigil.home import Home
from vigil.keeper import protocol, wire
from vigil.kernel.process import is_alive, is_dying, read_start_ticks, read_stat
from vigil.kernel.theirs import read_start
from vigil.kernel.trust import Untrusted, connect_own, read_locker

START_S = 10.0
SOCKET_S = 3.0  # for a living keeper to make its lost socket anew: it does so at once, or every two seconds
LOOK_S = 0.02
AGAIN_S = 0.2  # between two keepers of which the first ended at once
PING_EVERY_S = 5.0
PING_S = 3.0
HUNG_EVERY_S = 0.5  # launches wait for a keeper that hangs
WATCH_S = 10.0
STOPPED = "Tt"


class KeeperSilent(Exception):
    """The keeper gave no answer in time, or is gone; it may have done what we asked."""

    def __init__(self, why: str, timed_out: bool = False) -> None:
        super().__init__(why)
        self.timed_out = timed_out  # it had its time, and the line to it stands


class KeeperDeaf(Exception):
    """A keeper holds the lock and cannot be reached; the text says why and what to do."""

    def __init__(self, pid: int, words: str) -> None:
        super().__init__(words)
        self.pid = pid


class KeeperRefused(Exception):
    """The keeper said no to a request of the daemon, and why."""

    def __init__(self, why: str, short: bool = False) -> None:
        super().__init__(why)
        self.short = short  # the host lacks processes, descriptors, memory or room


@dataclass(eq=False, repr=False)
class KeeperLink:
    """The one link to this home's keeper, made anew whenever it is lost."""

    _home: Home
    _on_word: Callable[[protocol.Word], None]
    _on_change: Callable[[str, dict[str, Any]], None]
    _watches: Callable[[], tuple[protocol.Watch, ...]]  # a new keeper watches these, although it did not spawn them
    _nofile: int
    _process: subprocess.Popen[bytes] | None = None  # a keeper that our process started and that may still be on its way
    _writer: asyncio.StreamWriter | None = field(default=None, init=False)
    _waiting: dict[int, asyncio.Future[wire.Message]] = field(default_factory=dict, init=False)
    _next_id: int = field(default=0, init=False)
    _lost: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    pid: int | None = field(default=None, init=False)  # the last one; it may have ended
    identity: tuple[int, int] | None = field(default=None, init=False)  # that pid and its start: the number may be another's
    wedged: bool = field(default=False, init=False)
    _asked_anew: int | None = field(default=None, init=False)
    _linked: asyncio.Event = field(default_factory=asyncio.Event, init=False)  # a keeper answered on this line

    async def connect(self) -> None:
        """Link up with the keeper, or start one; one that hangs up was dying, and one that cannot be reached is wedged."""
        deadline = asyncio.get_running_loop().time() + START_S
        while True:
            try:
                await self._connect_once()
                return
            except KeeperSilent:
                if asyncio.get_running_loop().time() > deadline:
                    raise

    async def _connect_once(self) -> None:
        try:
            reader, writer = await self._reach()
        except KeeperDeaf as error:  # we watch without it, and go on trying
            self.pid = error.pid
            if not self.wedged:
                self.wedged = True
                self._on_change("keeper.unreachable", {"pid": self.pid, "why": str(error)})
            return
        self._writer = writer
        self._lost.clear()
        self._listening = asyncio.create_task(self._listen(reader))
        try:
            answer = await self.ask(protocol.PingRequest(), timeout_s=PING_S)
        except KeeperSilent as error:
            if self._writer is None:
                raise
            # It is there and hangs: we watch without it until it answers.
            self._linked.set()
            self._meet(self._pid_of_lock())
            self._note_wedged(str(error))
            return
        self._meet(answer.pid)
        self._note_answer()
        if answer.version < protocol.VERSION and self._asked_anew != self.pid:
            self._asked_anew = self.pid  # once: installed elsewhere, it becomes what it was
            await self._upgrade()
            return
        self._linked.set()
        await self.rewatch()

    def _meet(self, pid: int | None) -> None:
        """Take a keeper for ours; it lives now, so its number is its own."""
        self.pid = pid
        ticks = None if pid is None else read_start_ticks(pid)
        self.identity = None if pid is None or ticks is None else (pid, ticks)

    def living_pid(self) -> int | None:
        """Return the keeper's pid while that very keeper lives."""
        return self.pid if self.identity is not None and is_alive(*self.identity) else None

    async def why_silent(self, within_s: float) -> str:
        """Ask the keeper for a sign of life before it is given work; return why none came, else nothing."""
        try:
            async with asyncio.timeout(within_s):
                await self._linked.wait()  # one that is being replaced is there in a moment
            await self.ask(protocol.PingRequest(), timeout_s=within_s)
        except TimeoutError:
            return "there is no keeper at the moment"
        except KeeperRefused as error:
            return str(error)
        except KeeperSilent as error:
            if self._writer is not None and not self.wedged:
                self._note_wedged(str(error))
            return str(error)
        return ""

    async def run(self) -> None:
        """Keep the link to the keeper: ping, notice silence, reconnect."""
        while True:
            if self._writer is None:
                if not self.wedged:
                    self._on_change("keeper.lost", {"pid": self.pid})
                while self._writer is None:
                    await self._connect_again()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HUNG_EVERY_S if self.wedged else PING_EVERY_S):
                    await self._lost.wait()
            if self._writer is not None:
                await self._check()

    @overload
    async def ask(self, request: protocol.PingRequest, timeout_s: float) -> protocol.PingAnswer: ...
    @overload
    async def ask(self, request: protocol.SpawnRequest, timeout_s: float) -> protocol.Born: ...
    @overload
    async def ask(self, request: protocol.ForgetRequest, timeout_s: float) -> protocol.ForgetAnswer: ...
    @overload
    async def ask(self, request: protocol.Request, timeout_s: float) -> protocol.Answer: ...

    async def ask(self, request: protocol.Request, timeout_s: float) -> protocol.Answer:
        """Return the keeper's answer; raise KeeperSilent after the deadline, KeeperRefused if it says no."""
        message = await self._exchange(request, timeout_s)
        try:
            answer = wire.read_answer(request, message)
        except wire.Malformed as error:
            raise KeeperSilent(f"the keeper (pid {self.pid}) gave an answer that is not understood: {error}") from None
        if isinstance(answer, protocol.RefusedAnswer):
            raise KeeperRefused(answer.why, answer.short)
        return answer

    async def _exchange(self, request: protocol.Request, timeout_s: float) -> wire.Message:
        if self._writer is None:
            lives = f"the keeper (pid {self.pid}) cannot be reached: vigil doctor says why"
            raise KeeperSilent(lives if self.wedged else "there is no keeper at the moment")
        self._next_id += 1
        number = self._next_id
        answered: asyncio.Future[wire.Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            self._writer.write(wire.encode_request(number, request))
            async with asyncio.timeout(timeout_s):
                return await answered
        except TimeoutError:
            raise KeeperSilent(f"the keeper (pid {self.pid}) gave no answer in {timeout_s:g} s", timed_out=True) from None
        except ConnectionError:
            raise KeeperSilent("the keeper hung up") from None
        finally:
            self._waiting.pop(number, None)

    def tell(self, request: protocol.Request) -> None:
        """Send the keeper a request and go on; its refusal becomes an event."""
        if self._writer is not None:
            self._writer.write(wire.encode_request(0, request))

    def note_refusal(self, why: str) -> None:
        """Log a keeper's refusal that its asker does not handle."""
        self._on_change("keeper.refused", {"pid": self.pid, "why": why})

    async def rewatch(self) -> None:
        """Once linked, have a new keeper watch what it did not spawn."""
        if watches := self._watches():
            try:
                await self.ask(protocol.WatchRequest(watches), timeout_s=WATCH_S)
            except KeeperSilent as error:
                log.error("keeper not told", why=str(error))
            except KeeperRefused as error:
                self.note_refusal(str(error))

    async def close(self) -> None:
        """Hang up on the keeper, which stays while it has something to watch."""
        if self._writer is not None:
            self._listening.cancel()
            self._writer.close()
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()
            self._writer = None
            self._linked.clear()

    async def _connect_again(self) -> None:
        was_wedged = self.wedged
        try:
            await self.connect()
            if not self.wedged and not was_wedged:
                self._on_change("keeper.started", {"pid": self.pid})
        except (OSError, KeeperSilent, KeeperRefused) as error:
            log.error("no keeper", why=str(error), next_try_s=1)
            await asyncio.sleep(1)

    async def _check(self) -> None:
        try:
            answer = await self.ask(protocol.PingRequest(), timeout_s=PING_S)
        except (KeeperSilent, KeeperRefused) as error:
            if self._writer is not None and not self.wedged:
                self._note_wedged(str(error))
            return
        if self.wedged:
            self._meet(answer.pid)
            self._note_answer()
            if answer.version < protocol.VERSION:
                await self._upgrade()
            else:
                await self.rewatch()

    def _note_answer(self) -> None:
        if self.wedged:
            self.wedged = False
            self._on_change("keeper.answers", {"pid": self.pid})

    def _note_wedged(self, why: str) -> None:
        self.wedged = True
        self._on_change("keeper.wedged", {"pid": self.pid, "why": why})

    def _pid_of_lock(self) -> int | None:
        try:
            return int(read_start(self._home.lock("keeper"), 32))
        except (OSError, ValueError):
            return None

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the keeper; KeeperDeaf if one lives and cannot be reached, KeeperSilent if none comes up."""
        now = asyncio.get_running_loop().time
        begun_at, started_at = now(), -AGAIN_S
        while True:
            try:
                return await self._connect_own()
            except (OSError, Untrusted) as error:
                why = getattr(error, "strerror", None) or str(error)
            holder = read_locker(str(self._home.lock("keeper")))
            if holder is None and self._is_gone() and now() >= started_at + AGAIN_S:
                self._process = start_keeper(self._home, self._nofile)
                started_at = now()
            if holder is not None and now() > begun_at + SOCKET_S and not is_dying(holder):
                raise KeeperDeaf(holder, _deaf_words(holder, why))
            if now() > begun_at + START_S:
                raise KeeperSilent(f"no keeper came up in {START_S:g} s; see {self._home.log / 'keeper.log'}")
            await asyncio.sleep(AGAIN_S if self.wedged else LOOK_S)

    async def _connect_own(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the process that holds the keeper's lock, and to no other (P13)."""
        sock = connect_own(str(self._home.keeper_socket), 0, str(self._home.lock("keeper")))
        return await asyncio.open_unix_connection(sock=sock, limit=wire.LINE_BYTES)

    def _is_gone(self) -> bool:
        """Say whether no keeper of ours is on its way."""
        return self._process is None or self._process.poll() is not None

    async def _upgrade(self) -> None:
        """Have an older keeper exec the installed one, keeping pid and children; link up again."""
        try:
            await self.ask(protocol.UpgradeRequest(), timeout_s=START_S)
        except KeeperSilent:
            pass
        except KeeperRefused as error:  # it goes on as it is
            self.note_refusal(str(error))
        await self.close()
        await self.connect()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        lines = wire.Lines()
        try:
            while data := await reader.read(65536):
                for line in lines.feed(data):
                    self._hear(line)
        except (ConnectionError, wire.Malformed) as error:
            log.warning("the line to the keeper broke", why=str(error))
        self._writer = None
        self._linked.clear()
        self._lost.set()
        self.wedged = False
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(ConnectionResetError())

    def _hear(self, line: bytes) -> None:
        """Take in a line from the keeper: an answer, or a word sent unasked."""
        try:
            message = wire.decode(line)
            if "ev" in message:
                self._on_word(wire.read_word(message))
                return
        except wire.Malformed as error:
            self._on_change("keeper.misunderstood", {"pid": self.pid, "why": str(error)})
            return
        answered = self._waiting.get(wire.number_in(message, "re"))
        if answered is not None and not answered.done():
            answered.set_result(message)
        elif (refusal := wire.read_refusal(message)) is not None:
            self.note_refusal(refusal.why)


def _deaf_words(pid: int, why: str) -> str:
    """Return what a person is told of a keeper that lives and cannot be reached."""
    state = read_stat(pid)
    if state is not None and state.state in STOPPED:
        return f"it is stopped (kill -CONT {pid} lets it go on), and its socket is not to be had: {why}"
    return f"its socket is not to be had: {why}. vigil doctor says more; sessions run on"
