"""The ground: what every sensing or acting part is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vigil.core.events import Event
from vigil.daemon.base.clock import Clock
from vigil.home import Home


@dataclass(frozen=True)
class Ground:
    """The ground that parts stand on: home, clock, boot, and where they feed events."""

    home: Home
    clock: Clock
    boot: str
    feed: Callable[[Event], None]

    def now(self) -> float:
        return self.clock.now()
