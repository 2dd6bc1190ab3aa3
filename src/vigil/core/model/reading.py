"""Readings: what the axes show, and the doubt that a suspect remembers (DESIGN 4.1, 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.speech import Activity


class Axis(StrEnum):
    """An axis whose readings Vigil keeps apart and never folds into others (DESIGN 4.1)."""

    SERVER = "server"
    RUNTIME = "runtime"
    PROCESS = "process"
    ACTIVITY = "activity"


class AxisValue(StrEnum):
    """A reading of the server, runtime or process axis; activity shows an Activity."""

    ALIVE = "alive"
    DEAD = "dead"
    STOPPED = "stopped"
    WEDGED = "wedged"  # it lives, and does not answer
    UNKNOWN = "unknown"  # the probe ran and could not tell
    FAILED = "failed"  # the probe failed


@dataclass(frozen=True, slots=True)
class Fact:
    """One reading of one axis: what, from where, how sure."""

    axis: Axis
    value: AxisValue | Activity
    source: str
    observed_at: float
    conclusive: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The last reading of an axis: what it shows, and since when."""

    value: AxisValue | Activity
    source: str
    conclusive: bool
    observed_at: float
    since: float
    why: str = ""


class DoubtKind(StrEnum):
    WEDGED = "wedged"
    BLIND = "blind"
    UNREADABLE = "unreadable"
    CONFIRM = "confirm"
    PANE = "pane"
    ORACLE = "oracle"
    ORPHANED = "orphaned"


@dataclass(frozen=True, slots=True)
class Doubt:
    """The doubt that readings of a suspect leave; it survives a restart of the daemon."""

    kind: DoubtKind
    axis: Axis  # a healthy fact of this axis ends it
    since: float
    attempts: int
    evidence: str  # readings without times: a change restarts the attempts, not the clock
    sampled_at: float
