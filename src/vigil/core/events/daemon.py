"""Events of the daemon itself: its timers, configuration, start and notes."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.effects import TimerKind
from vigil.core.model.incident import Reaction
from vigil.core.model.stall import Watchdogs


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer of the daemon fired: a moment that the machine asked for has come."""

    session_id: str  # or the key of a role
    kind: TimerKind


@dataclass(frozen=True, slots=True)
class Resumed:
    """A new daemon has started and goes on with the stored sessions."""

    booted: bool = False  # the host was booted since they were stored


@dataclass(frozen=True, slots=True)
class KeeperHeard:
    """The daemon's keeper answers, or why none does: launches wait for that."""

    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """The daemon could not look for a while: it, or the host, did not run."""

    lasted_s: float


@dataclass(frozen=True, slots=True)
class WatchdogsSet:
    watchdogs: Watchdogs


@dataclass(frozen=True, slots=True)
class Configured:
    routes: tuple[str, ...]
    reactions: tuple[Reaction, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """The daemon has an entry for the event log that changes nothing."""

    kind: str
    data: tuple[tuple[str, str | int | float | None], ...] = ()
    session_id: str | None = None
    session: str | None = None
    launch_id: str | None = None


DaemonEvent = TimerFired | Resumed | KeeperHeard | Gap | WatchdogsSet | Configured | Noted
