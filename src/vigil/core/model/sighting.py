"""Sightings: what the reaper reads of a session or a stray, and its verdict (DESIGN 4.5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.launch import ProcessId
from vigil.core.model.speech import Activity


class ReapClass(StrEnum):
    """The class into which the reaper's sighting puts a session."""

    ATTACHED = "attached"
    BUSY = "busy"
    UNKNOWN = "unknown"
    ORPHAN = "orphan"
    ARCHIVED = "archived"
    IDLE = "idle"
    KEEP = "keep"


class ReapAction(StrEnum):
    KEEP = "keep"
    PARK = "park"
    KILL = "kill"


class ReapOutcome(StrEnum):
    PARKED = "parked"
    STOPPED = "stopped"
    ENDED = "ended"  # of a stray, or what a launch left behind
    REMOVED = "removed"
    SPARED = "spared"  # something changed since the verdict
    FAILED = "failed"  # some of it lives on
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ReapVerdict:
    """The reaper's verdict on a sighting: class, action and evidence, whose first line decided."""

    name: str
    launch_id: str
    kind: ReapClass
    action: ReapAction
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReapPolicy:
    idle_ttl_s: float = 48 * 3600.0  # 0 is never
    grace_s: float = 60.0
    pressure: str = ""  # memory is short, in words: the longest idle session is parked


@dataclass(frozen=True, slots=True)
class Guard:
    """What the reaper sighted and must still hold at the kill; tmux compares it (P2)."""

    target: str  # the session in its server, by id
    cutoff: int  # wall-clock second before the reading: its pane printed nothing since
    clients: str = ""  # attached clients as its server lists them: none
    history: int | None = None  # instead of the cutoff, for a spinner: lines of history
    printed: int | None = None  # without a server: so many bytes were printed by then


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What the reaper reads of one launch for its sighting; None could not be read."""

    launch_id: str
    at: float
    clients: int | None = 0  # people
    printed_at: float | None = None  # its pane printed last
    spins: bool = False  # a spinner: it prints all the time and shows the same
    cpu: float | None = None  # cores, of all its processes
    folder_gone_s: float | None = None  # its working folder is gone, for at least so long
    unreadable: str = ""  # what could not be found out
    guard: Guard | None = None
    survivors: tuple[ProcessId, ...] = ()  # of a launch that has ended


@dataclass(frozen=True, slots=True)
class Stray:
    """Processes that the reaper sighted, with Vigil's mark but of no known launch."""

    launch_id: str  # by its own mark
    name: str
    processes: tuple[ProcessId, ...]
    server: ProcessId | None = None
    socket: str = ""
    pane: str = ""
    age_s: float = 0.0
    older_than_store: bool = False
    glimpse: Glimpse | None = None
    unproven: bool = False  # an agent left it to the keeper; of which launch it is cannot be told

    @property
    def all_processes(self) -> tuple[ProcessId, ...]:
        """All processes of a sighted stray, its server first."""
        return self.processes if self.server is None else (self.server, *self.processes)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A sighting: all that the reaper's table looks at, of one session or stray."""

    runs: bool = True
    human_clients: int = 0
    activity: str = Activity.UNKNOWN
    open: str = ""  # work that is open beside the agent's own turn
    cpu: float | None = None
    unreadable: str = ""
    orphan: str = ""  # why it is one
    orphan_s: float = 0.0  # for how long
    archived: bool = False
    quiet_s: float = 0.0  # since anything that counts as work
    last_work: str = ""
    idle_ttl_s: float = 0.0
    grace_s: float = 60.0
    kept: str = ""  # why the reaper leaves it alone
