"""The ground: what every acting part is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vigil.core.events import Event
from vigil.daemon.base.clock import Clock
from vigil.home import Home


@dataclass(frozen=True)
class Ground:
    """One home, its clock, this boot of its host, and where events are fed."""

    home: Home
    clock: Clock
    boot: str
    feed: Callable[[Event], None]
