"""Commands to servers: each with a deadline, one at a time for a server, AT_ONCE in all, and counted.

A command that hangs is abandoned and ended, with all it started; no other waits for it. If the last UNWELL_AFTER were
abandoned, on more than one server, the fault is more likely ours: the prober calls itself unwell until any answer comes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

from vigil.command import NOT_STARTED, CommandAnswer, lingering, run_command
from vigil.kernel.trust import Untrusted, name_of, open_server

AT_ONCE = 8
UNWELL_AFTER = 5
LINGERING = 3
FORGIVEN_S = 60.0


class Calls:
    """All commands to servers."""

    def __init__(self, deadline_s: float, on_health: Callable[[bool, str], None]) -> None:
        self._deadline_s = deadline_s
        self._on_health = on_health
        self._threads = ThreadPoolExecutor(AT_ONCE, "probe")
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
            answer = await self._run(lambda: self._ask(server, process, command, env, stdin))
        finally:
            lock.release()
        self._judge(server, answer)
        return answer.output if answer.status == 0 else None

    def close(self) -> None:
        """Start no more commands."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, ask: Callable[[], CommandAnswer]) -> CommandAnswer:
        self.in_flight += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        finally:
            self.in_flight -= 1

    def _ask(
        self, server: str, process: tuple[int, int] | None, command: Sequence[str], env: Mapping[str, str], stdin: bytes
    ) -> CommandAnswer:
        """Start the client only where our own server listens, and on that listener: it executes what its server says."""
        try:
            fd, _ = open_server(server, process)
        except (OSError, Untrusted) as error:
            return CommandAnswer(NOT_STARTED, b"", str(error).encode())
        try:
            argv = ("tmux", "-u", "-N", "-S", name_of(fd), *command)
            return run_command(argv, self._deadline_s, env, stdin, pass_fds=(fd,))
        finally:
            os.close(fd)

    def _judge(self, server: str, answer: CommandAnswer) -> None:
        """Count an abandoned command, and report when these become too many or are over."""
        if answer.abandoned:
            self.abandoned += 1
            self._failed = [*self._failed, server][-UNWELL_AFTER:]
        else:
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
