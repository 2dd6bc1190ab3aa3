"""Events of a launch: how it comes to life, changes hands and ends."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.conversation import Transcript
from vigil.core.model.death import Exit
from vigil.core.model.launch import ProcessId
from vigil.core.model.reading import Fact
from vigil.core.model.session import Session
from vigil.core.model.sighting import ReapOutcome, Stray


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch came to life, with these processes."""

    launch_id: str
    at: float
    process: ProcessId
    root: ProcessId | None
    server: ProcessId | None
    pane: str | None
    facts: tuple[Fact, ...]
    adopted: bool = False
    names: tuple[str, ...] = ()  # the agent must still be found, by one of these names
    conversation: str = ""  # given to it
    account: str = ""  # whose limits it meets, if known
    without: tuple[str, ...] = ()  # what could not be set up for it, a line each
    speaks: bool = False  # this kind of agent says what it does
    reads_input: bool = False  # and reads a pipe that is held open for it
    cgroup: str = ""  # that it was born in


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """A launch was ordered and is verified never to have begun: its own fault, or Vigil's."""

    launch_id: str
    at: float
    why: str
    ours: bool = False  # Vigil's own: the keeper died or hung, or the daemon was at fault (P15)


@dataclass(frozen=True, slots=True)
class Unordered:
    """A launch was not ordered: no keeper answered."""

    launch_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The last daemon ended before any keeper had a launch's order: it is ordered now (P10)."""

    launch_id: str


@dataclass(frozen=True, slots=True)
class Found:
    """A sensor found a launch's own agent below the command that runs it."""

    launch_id: str
    process: ProcessId
    fact: Fact


@dataclass(frozen=True, slots=True)
class Exited:
    """The agent of a launch ended, with all that could be found out."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The agent of a launch outlived its pane or its server."""

    launch_id: str
    at: float
    what: str  # "server" or "pane"
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class RuntimeEnded:
    """The pane of a dead launch closed, or its headless group is empty."""

    launch_id: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Vigil ended a launch: all of it is verified gone, or not."""

    launch_id: str
    ok: bool
    why: str = ""
    transcript: Transcript | None = None  # what is left of its conversation, now that it is final


@dataclass(frozen=True, slots=True)
class Attended:
    """Vigil did not end a launch: a person uses what is left of it."""

    launch_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Spared:
    """Vigil did not reap a launch: tmux saw a change, or the outcome is unknown."""

    launch_id: str
    why: str
    unsure: bool = False  # it may have been reaped


@dataclass(frozen=True, slots=True)
class StrayEnded:
    stray: Stray
    outcome: ReapOutcome
    ended: int = 0  # of its processes
    left: int = 0
    why: str = ""
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """Vigil ended what a dead launch's runtime left; it is gone or not."""

    launch_id: str
    facts: tuple[Fact, ...]
    gone: bool = True
    transcript: Transcript | None = None


@dataclass(frozen=True, slots=True)
class Adopted:
    """Vigil took over a session, with its launch, that was started elsewhere."""

    session: Session
    facts: tuple[Fact, ...]
    actor: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """Launches live whose sessions the store does not know; they say what they are."""

    sessions: tuple[Session, ...]
    why: str


LaunchEvent = Launched | LaunchFailed | Unordered | Interrupted | Found | Exited | Orphaned | RuntimeEnded | Ended | Closed
CustodyEvent = Attended | Spared | StrayEnded | Adopted | Recovered
