"""Events of the daemon itself: its timers, configuration, start and notes."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.incident import Reaction
from vigil.core.model.stall import Watchdogs
from vigil.core.model.timer import TimerKind


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A moment that the machine asked for has come."""

    session_id: str  # or the key of a role
    kind: TimerKind


@dataclass(frozen=True, slots=True)
class Resumed:
    """A daemon took over the stored sessions and goes on with them."""

    booted: bool = False  # the host was booted since they were stored


@dataclass(frozen=True, slots=True)
class Gap:
    """Vigil could not look for a while: the host slept, or the daemon did not run."""

    lasted_s: float


@dataclass(frozen=True, slots=True)
class WatchdogsSet:
    """The configured thresholds of silence."""

    watchdogs: Watchdogs


@dataclass(frozen=True, slots=True)
class Configured:
    """The configured routes, and the reactions to incidents."""

    routes: tuple[str, ...]
    reactions: tuple[Reaction, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """An entry for the event log that changes nothing."""

    kind: str
    data: tuple[tuple[str, str | int | float | None], ...] = ()
    session_id: str | None = None
    session: str | None = None
    launch_id: str | None = None


DaemonEvent = TimerFired | Resumed | Gap | WatchdogsSet | Configured | Noted
