"""The floor: what asyncio and pidfds alone reach, without a log, an interface or any state. Not a product."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.harness import AGENT
from bench.peers.contract import Lines, Peer

PROGRAM = Path(__file__).with_name("floor_program.py")


class Floor(Peer):
    """Thirty lines of Python."""

    name = "floor"
    label = "asyncio + pidfd (floor)"
    kills = 100
    phase_s = 0.3

    def command(self) -> list[str]:
        """It needs no configuration, only the pipe to say deaths on."""
        self._lines = Lines(self.folder / "deaths")
        return [sys.executable, str(PROGRAM), str(self.count), str(self.folder / "deaths"), *AGENT]

    def subscribe(self) -> None:
        """It always tells."""

    def told_at_ns(self, pid: int, within_s: float) -> int:
        """Return when its callback ran."""
        return self._lines.told_at_ns(pid, within_s)

    def stop(self) -> None:
        """End it; it ends its agents."""
        super().stop()
        self._lines.close()
