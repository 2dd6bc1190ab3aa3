"""Commands to servers: each with a deadline, one at a time for a server, AT_ONCE in all, and counted.

A command that hangs is abandoned and ended, with all it started; no other waits for it. A stopped server is asked nothing,
and one that let a command hang has a thread apart, which it shares with its like, until it answers. If the last UNWELL_AFTER
were abandoned, on more than one server, the fault is more likely ours: the prober calls itself unwell until any answer comes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakValueDictionary

from vigil.command import NOT_STARTED, CommandAnswer, lingering, run_command
from vigil.hands import Hands, Hangs
from vigil.kernel.process import is_stopped
from vigil.kernel.trust import Untrusted, name_of, open_server
from vigil.threads import ask

AT_ONCE = 8
DOUBTED_AT_ONCE = 2
ENDED_S = 2.0  # a command is ended about half a second after its deadline
UNWELL_AFTER = 5
LINGERING = 3
FORGIVEN_S = 60.0
STOPPED_SERVER = CommandAnswer(NOT_STARTED, b"", b"it is stopped")


class Calls:
    """All commands to servers."""

    def __init__(self, deadline_s: float, on_health: Callable[[bool, str], None]) -> None:
        self._deadline_s = deadline_s
        self._on_health = on_health
        self._hands = Hands("probe", AT_ONCE)
        self._doubtful = Hands("probe again", DOUBTED_AT_ONCE)
        self._doubted: set[str] = set()  # servers whose last command was abandoned
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._failed: list[str] = []  # the servers of the last abandoned commands in a row
        self._well = True
        self.in_flight = 0
        self.abandoned = 0

    async def run(
        self,
        server: str,
        command: Sequence[str],
        env: Mapping[str, str],
        stdin: bytes = b"",
        process: tuple[int, int] | None = None,
    ) -> bytes | None:
        """Return what a command printed; None if it failed, gave no answer in time, or a stranger listens there."""
        lock = self._locks.setdefault(server, asyncio.Lock())
        try:
            async with asyncio.timeout(self._deadline_s):
                await lock.acquire()
        except TimeoutError:
            return None
        try:
            answer = await self._run(server, lambda: self._ask(server, process, command, env, stdin))
        finally:
            lock.release()
        if answer is None or answer.status == NOT_STARTED:
            return None
        self._judge(server, answer)
        return answer.output if answer.status == 0 else None

    def close(self) -> None:
        """Start no more commands."""
        self._hands.close()
        self._doubtful.close()

    async def _run(self, server: str, command: Callable[[], CommandAnswer]) -> CommandAnswer | None:
        """Return a command's answer; None if no thread was free for it in time."""
        self.in_flight += 1
        try:
            hands = self._doubtful if server in self._doubted else self._hands
            return await ask(hands, command, self._deadline_s + ENDED_S, server)
        except Hangs:
            return None
        finally:
            self.in_flight -= 1

    def _ask(
        self, server: str, process: tuple[int, int] | None, command: Sequence[str], env: Mapping[str, str], stdin: bytes
    ) -> CommandAnswer:
        """Start the client only where our own server listens, and on that listener: it executes what its server says."""
        if process is not None and is_stopped(*process):  # first: each question takes a place in its backlog
            return STOPPED_SERVER
        try:
            fd, pid = open_server(server, process)
        except (OSError, Untrusted) as error:
            return CommandAnswer(NOT_STARTED, b"", str(error).encode())
        try:
            if is_stopped(pid):  # it listens: its number is its own
                return STOPPED_SERVER
            argv = ("tmux", "-u", "-N", "-S", name_of(fd), *command)
            return run_command(argv, self._deadline_s, env, stdin, pass_fds=(fd,))
        finally:
            os.close(fd)

    def _judge(self, server: str, answer: CommandAnswer) -> None:
        """Count an abandoned command, and report when these become too many or are over."""
        if answer.abandoned:
            self.abandoned += 1
            self._doubted.add(server)
            self._failed = [*self._failed, server][-UNWELL_AFTER:]
        else:
            self._doubted.discard(server)
            self._failed = []
        self._weigh()
        if not self._well:
            asyncio.get_running_loop().call_later(FORGIVEN_S, self._forgive, self.abandoned)

    def _forgive(self, abandoned: int) -> None:
        """Call the prober well again after a while without abandoned commands."""
        if abandoned == self.abandoned:
            self._failed = []
            self._weigh()

    def _weigh(self) -> None:
        left = lingering()
        well = left < LINGERING and not (len(self._failed) == UNWELL_AFTER and len(set(self._failed)) > 1)
        if well != self._well:
            self._well = well
            words = f"{left} probes cannot be ended" if left >= LINGERING else f"{UNWELL_AFTER} probes in a row gave no answer"
            self._on_health(well, "a probe was answered" if well else words)
