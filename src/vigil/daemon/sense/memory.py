"""Memory: tells how many more launches the host has room for, whenever that changes.

Each launch counts as the least that must be available until memory is read again: a big team comes up as its memory shows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from vigil.core.events import Event, MemoryRead
from vigil.daemon.base.clock import next_tick_s
from vigil.observe.memory import Memory

EVERY_S = 1.0
PLENTY = 64  # more launches than start in a second: memory does not matter
MIB = 1 << 20


class Admission:
    def __init__(
        self, feed: Callable[[Event], None], least_bytes: Callable[[], int], keeper_pid: Callable[[], int | None]
    ) -> None:
        self._feed = feed
        self._keeper_pid = keeper_pid  # our launches are born below it, in its cgroup
        self._least_bytes = least_bytes
        self._memory = Memory()
        self._told: int | None = None
        self.shortage = ""  # why there is no memory for one more launch

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(next_tick_s(EVERY_S))

    def look(self) -> None:
        """Read the host's available memory, and feed a change that matters to launches."""
        least = self._least_bytes()
        available = self._memory.read(self._keeper_pid() or os.getpid()) if least > 0 else None
        room = room_for(available, least)
        words = "" if available is None else f"{available // MIB} MiB are available, {least // MIB} MiB must be"
        self.shortage = words if room is not None and room <= 0 else ""
        if room is not None or self._told is not None:  # while memory matters each reading is told: some was used since
            self._feed(MemoryRead(room, words))
        self._told = room


def room_for(available: int | None, least: int) -> int | None:
    """Return how many launches fit into memory; None with plenty, or if it is unreadable."""
    if available is None or least <= 0:
        return None
    room = available // least
    return None if room >= PLENTY else room
