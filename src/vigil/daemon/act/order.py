"""Orders: what became of a launch that a keeper was asked for, when no answer came; one that is given up is taken back.

Keeper and shim begin no agent without its order: once that is taken away, whatever has begun can be found (P1, P3)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from vigil.core.model.launch import Launch, ProcessId
from vigil.daemon.act.birth import TICKS_A_SECOND, born_in
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.daemon.sense.census import Census
from vigil.keeper.protocol import BEGAN, ORDER, Born
from vigil.keeper.wire import as_json
from vigil.kernel import durable, process
from vigil.kernel.processes import read_command
from vigil.kernel.shortage import RESERVE
from vigil.observe.survivors import SeenProcess
from vigil.runtimes.sandbox import GATE_NAME

WITHDRAWN = "withdrawn.json"
BORN = "born.json"
# A keeper that took up an order has made one of these.
TOUCHED = (WITHDRAWN, BORN, BEGAN, "pid", "shim-exit", "pid.fifo", "stdout.jsonl", "stdin.fifo")
LOOK_S = 0.02
SETTLE_S = 0.2  # a shim that saw its order becomes the agent within this


@dataclass(frozen=True, slots=True)
class LostOrder:
    """An order that no living agent came of; `lived` says whether one had begun."""

    lived: bool


@dataclass(eq=False, repr=False)
class Orders:
    _ground: Ground
    _census: Census
    _end: Callable[[Launch], Awaitable[list[ProcessId]]]

    def was_given(self, launch: Launch) -> bool:
        """Say whether an order was written, also one that was taken back."""
        folder = self._folder(launch)
        return (folder / ORDER).exists() or (folder / WITHDRAWN).exists()

    async def is_untouched(self, launch: Launch) -> bool:
        """Say whether no keeper took up an order, and nothing of it lives."""
        folder = self._folder(launch)
        return not any(os.path.lexists(folder / name) for name in TOUCHED) and not await self._living(launch)

    def is_of_other_boot(self, launch: Launch) -> bool:
        """Say whether an order, or its birth, is of an earlier boot of the host: nothing of it lives."""
        records = (durable.read_json(str(self._folder(launch) / name)) for name in (BORN, ORDER, WITHDRAWN))
        boots = [str(record.get("boot", self._ground.boot)) for record in records if record is not None]
        return any(process.is_other_boot(boot, self._ground.boot) for boot in boots)

    def may_come(self, launch: Launch, keeper_pid: int | None) -> bool:
        """Say whether a keeper may still carry out an order: it is older than that."""
        ticks = None if keeper_pid is None else process.read_start_ticks(keeper_pid)
        try:
            ordered_s = time.time() - os.stat(self._folder(launch) / ORDER).st_mtime
        except OSError:
            return False
        return ticks is not None and time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / TICKS_A_SECOND > ordered_s

    def has_begun(self, launch: Launch) -> bool:
        """Say whether an order's agent began once, whatever became of it."""
        folder = self._folder(launch)
        return (folder / BEGAN).exists() or ((folder / BORN).exists() and self._is_plain(launch))

    async def settle(self, launch: Launch, within_s: float = 0.0) -> Born | LostOrder:
        """Find out what became of an order, and leave one truth: an agent that has begun, or verified nothing.

        A keeper that may still carry it out has `within_s`. Then the order is withdrawn: nothing begins late."""
        deadline = asyncio.get_running_loop().time() + within_s
        while asyncio.get_running_loop().time() < deadline and await self._living(launch):
            if (born := self._begun(launch)) is not None:
                return born
            await asyncio.sleep(LOOK_S)
        self._withdraw(launch)
        if await self._living(launch):
            await asyncio.sleep(SETTLE_S)
        born = self._begun(launch) or self._untold(launch, await self._living(launch))
        if born is not None:
            self._restore(launch)
            return born
        left = await self._end(launch)
        if left:
            log.error("what an order left could not be ended", launch=launch.id, pids=[one.pid for one in left])
        return LostOrder(lived=self.has_begun(launch))

    async def _living(self, launch: Launch) -> list[SeenProcess]:
        return [seen for seen in await self._census.take() if seen.launch_id == launch.id]

    def _begun(self, launch: Launch) -> Born | None:
        """Return the recorded birth of an order's agent, if that has begun; before, it is a shim at its gate."""
        record = durable.read_json(str(self._folder(launch) / BORN))
        if record is None:
            return None
        born = born_in(record, launch.id)
        if born is None or (self._folder(launch) / BEGAN).exists():
            return born
        return born if process.is_alive(*born.agent) and not is_at_gate(born.agent[0]) else None

    def _untold(self, launch: Launch, living: list[SeenProcess]) -> Born | None:
        """Return and record the birth of a headless agent whose keeper died before it could."""
        if not self._is_plain(launch):
            return None
        leaders = [seen.process for seen in living if seen.process.pid == seen.sid and not seen.inherited]
        if len(leaders) != 1:
            return None
        born = Born((leaders[0].pid, leaders[0].start_ticks))
        with contextlib.suppress(OSError):  # the next daemon would have to find it again
            durable.record_json(str(self._folder(launch) / BORN), {**as_json(born), "boot": self._ground.boot})
        return born

    def _is_plain(self, launch: Launch) -> bool:
        """Say whether an order's agent is the keeper's own child: it waits at no gate."""
        folder = self._folder(launch)
        order = durable.read_json(str(folder / ORDER)) or durable.read_json(str(folder / WITHDRAWN)) or {}
        return order.get("runtime") == "headless" and not order.get("sandboxed")

    def _withdraw(self, launch: Launch) -> None:
        folder = self._folder(launch)
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder / ORDER, folder / WITHDRAWN)

    def _restore(self, launch: Launch) -> None:
        folder = self._folder(launch)
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder / WITHDRAWN, folder / ORDER)

    def _folder(self, launch: Launch) -> Path:
        return self._ground.home.launch(launch.id)


def is_at_gate(pid: int) -> bool:
    """Say whether a process of an order is still a shim that waits to become the agent; OSError is none."""
    try:
        words = RESERVE.call(read_command, pid)
    except OSError:
        return False
    return words[3:4] == [GATE_NAME.encode()] or (words[2:3] == [b"agent"] and words[1].endswith(b"/keeper/shim.sh"))
