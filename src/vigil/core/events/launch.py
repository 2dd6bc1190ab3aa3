"""How a launch comes to life, changes hands and ends."""

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
    """A spawn came to life; these are its processes."""

    launch_id: str
    at: float
    process: ProcessId
    root: ProcessId | None
    server: ProcessId | None
    pane: str | None
    facts: tuple[Fact, ...]
    adopted: bool = False
    names: tuple[str, ...] = ()  # the agent is still to be found, by one of these names
    conversation: str = ""  # that it was given
    account: str = ""  # whose limits it meets, where that was found out
    without: tuple[str, ...] = ()  # what could not be set up for it, a line each
    speaks: bool = False  # this kind of agent says what it does
    reads_input: bool = False  # and reads a pipe that is held open for it


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """A spawn never came to life."""

    launch_id: str
    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The daemon before us ended while it was launching; nothing came to life, and nobody is to blame (P10)."""

    launch_id: str


@dataclass(frozen=True, slots=True)
class Found:
    """The agent itself was found below the command that runs it."""

    launch_id: str
    process: ProcessId
    fact: Fact


@dataclass(frozen=True, slots=True)
class Exited:
    """The agent of a launch ended, with all that could be found out about it."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The agent outlived its pane or its server."""

    launch_id: str
    at: float
    what: str  # "server" or "pane"
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class RuntimeEnded:
    """The pane of an agent that was dead already has closed, or its headless group has emptied."""

    launch_id: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of ending a launch: everything of it is verified gone, or it is not."""

    launch_id: str
    ok: bool
    why: str = ""
    transcript: Transcript | None = None  # what there is of its conversation, now that nobody writes it any more


@dataclass(frozen=True, slots=True)
class Attended:
    """A launch was not ended: somebody uses what is left of it."""

    launch_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Spared:
    """A launch was not reaped: its tmux server compared, and something was no longer so; or nobody can tell."""

    launch_id: str
    why: str
    unsure: bool = False  # it cannot be told whether it was


@dataclass(frozen=True, slots=True)
class StrayEnded:
    """What became of a stray that was to be ended."""

    stray: Stray
    outcome: ReapOutcome
    ended: int = 0  # of its processes
    left: int = 0
    why: str = ""
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """What was left of a dead launch's runtime was ended, and is gone or not."""

    launch_id: str
    facts: tuple[Fact, ...]
    gone: bool = True
    transcript: Transcript | None = None


@dataclass(frozen=True, slots=True)
class Adopted:
    """A session that was started elsewhere is taken over; it goes on as it is."""

    session: Session
    facts: tuple[Fact, ...]
    actor: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """Sessions live that the store does not know: they are as their launches say."""

    sessions: tuple[Session, ...]
    why: str


LaunchEvent = (
    Launched
    | LaunchFailed
    | Interrupted
    | Found
    | Exited
    | Orphaned
    | RuntimeEnded
    | Ended
    | Attended
    | Spared
    | StrayEnded
    | Closed
    | Adopted
    | Recovered
)
