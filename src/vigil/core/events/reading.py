"""Events of the sensors: readings of launches, of agents' words, of the host."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.evidence import Evidence
from vigil.core.model.reading import Fact
from vigil.core.model.sighting import Glimpse, ReapPolicy, Stray
from vigil.core.model.speech import Hook, Said


@dataclass(frozen=True, slots=True)
class Observed:
    """Sensors read the axes of one launch."""

    launch_id: str
    facts: tuple[Fact, ...]
    attached: int | None = None
    active_at: float | None = None
    socket_lost: bool = False  # its server lives, but its socket is gone
    printed_at: float | None = None  # its screen changed, and not only by a spinner
    delivered_at: float | None = None  # something was typed into it


@dataclass(frozen=True, slots=True)
class Swept:
    """Sensors read all launches in one pass; these are not plainly well."""

    observed: tuple[Observed, ...]
    looked_at: int


@dataclass(frozen=True, slots=True)
class Hooked:
    """Sensors read an agent's hooks, in order."""

    launch_id: str
    hooks: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """Sensors read an agent's words, in order, and say how far into its files."""

    launch_id: str
    said: tuple[Said, ...]
    source: str  # hook, stream, transcript or screen
    read_to: tuple[tuple[str, str], ...] = ()  # a file, and a position in it


@dataclass(frozen=True, slots=True)
class Weighed:
    """Sensors read how much memory a launch's processes have together, or the largest had."""

    launch_id: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Sensors read in one pass how much CPU each agent uses, in cores."""

    rates: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Sensors read what a silent launch and all below it do."""

    launch_id: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Stepped:
    """A reading after a remedy: its process is verified gone, its input closed, or not."""

    launch_id: str
    step: str
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sighted:
    """The reaper read all launches and strays; its table judges these readings."""

    glimpses: tuple[Glimpse, ...]
    strays: tuple[Stray, ...]
    policy: ReapPolicy
    actor: str
    ticket: str = ""  # the sweep that waits for verdicts and outcomes


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """A sensor read how many more launches the host has memory for; None is plenty."""

    room: int | None
    why: str


ReadingEvent = Observed | Swept | Hooked | Heard | Weighed | Measured | Diagnosed | Stepped | Sighted | MemoryRead
