"""Admission: how many more launches the host has memory for, said whenever that changes.

Each launch is counted as the least that must be available, until memory is read again: so a big team comes up as fast as the
memory of those before it shows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from vigil.core.events import Event, MemoryRead
from vigil.daemon.base.clock import next_tick_s
from vigil.observe.memory import Memory

EVERY_S = 1.0
PLENTY = 64  # more launches than start in a second: memory is no matter
MIB = 1 << 20


class Admission:
    """Watches the host's memory for those who are about to be launched."""

    def __init__(
        self, feed: Callable[[Event], None], least_bytes: Callable[[], int], keeper_pid: Callable[[], int | None]
    ) -> None:
        self._feed = feed
        self._keeper_pid = keeper_pid  # what we launch is born below it, in its cgroup
        self._least_bytes = least_bytes
        self._memory = Memory()
        self._told: int | None = None
        self.shortage = ""  # that there is no memory for one more launch, in words

    async def run(self) -> None:
        """Look again and again."""
        while True:
            self.look()
            await asyncio.sleep(next_tick_s(EVERY_S))

    def look(self) -> None:
        """Read how much there is, and say so if it makes a difference."""
        least = self._least_bytes()
        available = self._memory.read(self._keeper_pid() or os.getpid()) if least > 0 else None
        room = room_for(available, least)
        words = "" if available is None else f"{available // MIB} MiB are available, {least // MIB} MiB must be"
        self.shortage = words if room is not None and room <= 0 else ""
        if room is not None or self._told is not None:  # while memory is a matter it is told each time: some was used since
            self._feed(MemoryRead(room, words))
        self._told = room


def room_for(available: int | None, least: int) -> int | None:
    """Return how many launches have that much each; None where memory is no matter, or cannot be read."""
    if available is None or least <= 0:
        return None
    room = available // least
    return None if room >= PLENTY else room
