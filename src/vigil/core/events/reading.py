"""What the sensors read: of launches, of their agents' words, of the host."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.evidence import Evidence
from vigil.core.model.reading import Fact
from vigil.core.model.sighting import Glimpse, ReapPolicy, Stray
from vigil.core.model.speech import Hook, Said


@dataclass(frozen=True, slots=True)
class Observed:
    """Readings of the axes of one launch."""

    launch_id: str
    facts: tuple[Fact, ...]
    attached: int | None = None
    active_at: float | None = None
    socket_lost: bool = False  # its server lives, but nobody can reach it any more
    printed_at: float | None = None  # what its screen shows changed, and not only by a spinner
    delivered_at: float | None = None  # something was typed into it


@dataclass(frozen=True, slots=True)
class Swept:
    """What one pass over all launches found of those that are not plainly well."""

    observed: tuple[Observed, ...]
    looked_at: int


@dataclass(frozen=True, slots=True)
class Hooked:
    """What an agent said of itself, in order."""

    launch_id: str
    hooks: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """What an agent said of itself, in order, and how far what it writes was read with that."""

    launch_id: str
    said: tuple[Said, ...]
    source: str  # hook, stream, transcript or screen
    read_to: tuple[tuple[str, str], ...] = ()  # a file, and a position in it


@dataclass(frozen=True, slots=True)
class Weighed:
    """How much memory the processes of a launch have together, or the largest of them had."""

    launch_id: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """How much CPU the agents of launches use, in cores, each by itself: what one pass over all of them read."""

    rates: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """What the sensors read of a silent launch and of all below it."""

    launch_id: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Stepped:
    """What became of a remedy: the process that was meant is verified gone, the input is closed, or it is not."""

    launch_id: str
    step: str
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sighted:
    """The reaper looked at everything; what it is to do follows from what it saw."""

    glimpses: tuple[Glimpse, ...]
    strays: tuple[Stray, ...]
    policy: ReapPolicy
    actor: str
    ticket: str = ""  # who swept waits for what is judged, and for what becomes of it


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """How many more launches the host has memory for, until that is read again; None is plenty."""

    room: int | None
    why: str


ReadingEvent = Observed | Swept | Hooked | Heard | Weighed | Measured | Diagnosed | Stepped | Sighted | MemoryRead
