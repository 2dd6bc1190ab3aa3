"""What the daemon tells of itself: its timers, its configuration, its start, its notes."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.incident import Reaction
from vigil.core.model.stall import Watchdogs
from vigil.core.model.timer import TimerKind


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A moment the machine asked to be told of."""

    session_id: str  # or the key of a role
    kind: TimerKind


@dataclass(frozen=True, slots=True)
class Resumed:
    """A daemon took over the stored sessions; what was under way goes on."""

    booted: bool = False  # on another boot of the host than the one they were stored on


@dataclass(frozen=True, slots=True)
class Gap:
    """Time passed in which we could not look: the host slept, or we were not run; nothing is concluded from it."""

    lasted_s: float


@dataclass(frozen=True, slots=True)
class WatchdogsSet:
    """What the configuration says of silence, now."""

    watchdogs: Watchdogs


@dataclass(frozen=True, slots=True)
class Configured:
    """What the configuration says of incidents: which routes there are, and what is to be done about what."""

    routes: tuple[str, ...]
    reactions: tuple[Reaction, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that changes nothing belongs into the event log: of the host, of Vigil itself, or of a session."""

    kind: str
    data: tuple[tuple[str, str | int | float | None], ...] = ()
    session_id: str | None = None
    session: str | None = None
    launch_id: str | None = None


DaemonEvent = TimerFired | Resumed | Gap | WatchdogsSet | Configured | Noted
