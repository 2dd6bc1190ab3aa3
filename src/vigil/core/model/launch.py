"""A launch: one incarnation of a session, and its processes (DESIGN 4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RuntimeKind(StrEnum):
    TMUX = "tmux"
    HEADLESS = "headless"


class Mode(StrEnum):
    FRESH = "fresh"  # with a new conversation
    RESUME = "resume"  # where its conversation ended
    NOTHING = "nothing"  # there is nothing to do
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process of a launch for ever; recycled pids have other start times or boots."""

    pid: int
    start_ticks: int
    boot: str


@dataclass(frozen=True, slots=True)
class ForeignSession:
    """The foreign tmux session of an adopted launch; Vigil may give it back."""

    socket: str
    target: str  # by its id on that server
    name: str  # as it was called there


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch: one incarnation of a session; its id fences every fact, hook and exit."""

    id: str
    session_id: str
    number: int
    created_at: float
    started_at: float | None = None
    process: ProcessId | None = None
    root: ProcessId | None = None  # the pane's root; for a headless launch the agent leads its own group
    server: ProcessId | None = None
    pane: str | None = None
    names: tuple[str, ...] = ()  # names of the agent's process, if `process` only runs it
    found: ProcessId | None = None  # that agent, once it was seen
    ended_at: float | None = None
    closed: bool = False  # nothing of its runtime is left
    server_told: bool = False  # that its server died is in the event log
    mode: Mode = Mode.FRESH
    woken_for: str = ""  # the cause of that mode
    conversation: str = ""  # that it resumes
    summarised: bool = False  # and so is its summary
    host: ForeignSession | None = None  # it was adopted: its server is not ours
    speaks: bool = False  # its kind of agent reports, and is set up for that
    reads_input: bool = False  # headless, it reads a pipe that is held open for it
    cgroup: str = ""  # the folder of its own

    @property
    def agent(self) -> ProcessId | None:
        """The process whose life is the launch's."""
        return self.found or self.process
