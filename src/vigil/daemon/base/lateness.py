"""Lateness: how late the daemon's own event loop runs, by a beat each second, and its gaps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from vigil.daemon.base.clock import next_tick_s

BEATS = 600
BEAT_S = 1.0  # how often the loop says that it runs
ALLOWED_S = 2.0  # readings taken during a longer delay are void


class Beats:
    def __init__(self) -> None:
        self._late_ms: deque[float] = deque(maxlen=BEATS)

    def note(self, late_s: float) -> None:
        """Note how late one beat was; an early one was not late."""
        self._late_ms.append(max(0.0, late_s * 1000))

    def summary(self) -> dict[str, float]:
        """Return the lateness of beats in milliseconds: now, p99 and max."""
        late = sorted(self._late_ms)
        if not late:
            return {"now": 0.0, "p99": 0.0, "max": 0.0}
        p99 = late[min(len(late) - 1, int(len(late) * 0.99))]
        return {"now": round(self._late_ms[-1], 3), "p99": round(p99, 3), "max": round(late[-1], 3)}


class Lateness(Beats):
    def __init__(self, on_beat: Callable[[float], None]) -> None:
        super().__init__()
        self._on_beat = on_beat

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            pause_s = next_tick_s(BEAT_S)
            due = loop.time() + pause_s
            await asyncio.sleep(pause_s)
            late_s = loop.time() - due
            self.note(late_s)
            self._on_beat(late_s)


class Gaps:
    """Knows how late the whole loop is: gaps without a beat, suspends included."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._beat_at = now()

    def beat(self) -> None:
        """End a gap: the event loop runs; read `missed_s` first."""
        self._beat_at = self._now()

    def missed_s(self) -> float:
        """Return the gap since the loop's last beat, once; 0 if that was in time."""
        missed_s = self._now() - self._beat_at - BEAT_S
        if missed_s <= ALLOWED_S:
            return 0.0
        self.beat()
        return missed_s
