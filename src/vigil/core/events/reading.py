"""Events of the sensors: readings of launches, of agents' words, of the host."""

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
    socket_lost: bool = False  # its server lives, but its socket is gone
    printed_at: float | None = None  # its screen changed, and not only by a spinner
    delivered_at: float | None = None  # something was typed into it


@dataclass(frozen=True, slots=True)
class Swept:
    """What one pass found of the launches that are not plainly well."""

    observed: tuple[Observed, ...]
    looked_at: int


@dataclass(frozen=True, slots=True)
class Hooked:
    """An agent's hooks, in order."""

    launch_id: str
    hooks: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """An agent's words, in order, and how far its files were read with them."""

    launch_id: str
    said: tuple[Said, ...]
    source: str  # hook, stream, transcript or screen
    read_to: tuple[tuple[str, str], ...] = ()  # a file, and a position in it


@dataclass(frozen=True, slots=True)
class Weighed:
    """How much memory a launch's processes have together, or the largest of them had."""

    launch_id: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """How much CPU each agent uses, in cores, from one pass over all."""

    rates: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """What the sensors read of a silent launch and all below it."""

    launch_id: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Stepped:
    """A remedy ended: the process is verified gone, the input is closed, or not."""

    launch_id: str
    step: str
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sighted:
    """The reaper looked at everything; its table judges this."""

    glimpses: tuple[Glimpse, ...]
    strays: tuple[Stray, ...]
    policy: ReapPolicy
    actor: str
    ticket: str = ""  # the sweep that waits for verdicts and outcomes


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """How many more launches the host has memory for; None is plenty."""

    room: int | None
    why: str


ReadingEvent = Observed | Swept | Hooked | Heard | Weighed | Measured | Diagnosed | Stepped | Sighted | MemoryRead
