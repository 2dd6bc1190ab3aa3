"""How late the daemon's own loop is: a heartbeat that notes by how much each beat came too late."""

from __future__ import annotations

import asyncio
from collections import deque

BEAT_S = 1.0
BEATS = 600


class Lateness:
    """The last ten minutes of beats."""

    def __init__(self) -> None:
        self._late_ms: deque[float] = deque(maxlen=BEATS)

    async def run(self) -> None:
        """Beat for ever."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + BEAT_S
            await asyncio.sleep(BEAT_S)
            self._late_ms.append(max(0.0, (loop.time() - due) * 1000))

    def summary(self) -> dict[str, float]:
        """Return now, p99 and max in milliseconds."""
        late = sorted(self._late_ms)
        if not late:
            return {"now": 0.0, "p99": 0.0, "max": 0.0}
        p99 = late[min(len(late) - 1, int(len(late) * 0.99))]
        return {"now": round(self._late_ms[-1], 3), "p99": round(p99, 3), "max": round(late[-1], 3)}
