"""Timers: each of the machine's moments comes back as an event."""

from __future__ import annotations

import asyncio

from vigil.core.effects import SetTimer, TimerKind
from vigil.core.events import TimerFired
from vigil.daemon.base.ground import Ground


class Timers:
    """One timer for each session and kind; a new one replaces the old one."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._waiting: dict[tuple[str, TimerKind], asyncio.TimerHandle] = {}

    def set(self, effect: SetTimer) -> None:
        key = (effect.session_id, effect.kind)
        if (before := self._waiting.pop(key, None)) is not None:
            before.cancel()
        delay_s = max(0.0, effect.at - self._ground.now())
        self._waiting[key] = asyncio.get_running_loop().call_later(delay_s, self._fire, key)

    def forget(self, session_id: str) -> None:
        """Drop the timers of a session that is removed: nothing answers them."""
        for kind in TimerKind:
            if (handle := self._waiting.pop((session_id, kind), None)) is not None:
                handle.cancel()

    def close(self) -> None:
        for handle in self._waiting.values():
            handle.cancel()

    def _fire(self, key: tuple[str, TimerKind]) -> None:
        self._waiting.pop(key, None)
        self._ground.feed(TimerFired(*key))
