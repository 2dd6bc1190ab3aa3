"""Evidence: what sensors read of a launch and its processes; unread is unknown, never zero, idle or dead (P7, DESIGN 5)."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.launch import ProcessId

CHILDREN_KEPT = 64  # the first ones; `descendants` has the number


@dataclass(frozen=True, slots=True)
class Number:
    """A number in the evidence; None is unknown, and `why` says why."""

    value: float | None = None
    source: str = ""
    at: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    value: str | None = None
    source: str = ""
    at: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Flag:
    value: bool | None = None
    source: str = ""
    at: float = 0.0
    why: str = ""


NUMBER, TEXT, FLAG = Number(), Text(), Flag()  # not read


@dataclass(frozen=True, slots=True)
class Child:
    """Evidence of one process beside the agent, below it or left behind; None is unknown."""

    process: ProcessId
    name: str  # of its program
    command: str = ""  # without secrets, one line, bounded
    parent: int = 0
    below: bool = True  # a descendant of the agent; else only the launch's own by its mark
    state: str | None = None  # R S D T t Z, as the kernel has it
    wchan: str | None = None
    age_s: float | None = None
    cpu: float | None = None  # cores, over the window
    waited: float | None = None  # of the window: it was ready to run, and others ran
    burst_s: float | None = None  # how long it computes at a time before it sleeps
    io: float | None = None  # bytes a second, read and written, over the window
    sockets: int | None = None  # its own connections that are established
    received_s: float | None = None  # since the last byte came over one of them
    waits_for_input: bool | None = None  # it sleeps in a read of a pipe or a terminal that is its standard input
    holds_pipe: bool | None = None  # it holds the writing end of a pipe that the agent reads


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one launch in one moment; rates over `window_s`, ages before `at`."""

    at: float
    pid: int | None = None  # of the agent that was read
    late_s: Number = NUMBER  # how late this reading came
    # The agent's own process.
    state: Text = TEXT  # R S D T t Z, of its first thread
    wchan: Text = TEXT
    traced: Flag = FLAG  # a debugger holds it
    foreground: Flag = FLAG  # its group has the terminal
    # It and all below it.
    window_s: Number = NUMBER
    main_cpu: Number = NUMBER  # cores, of the agent's own process
    main_waited: Number = NUMBER  # of the window: that process was ready to run, and others ran
    main_burst_s: Number = NUMBER  # how long it computes at a time before it sleeps
    tree_cpu: Number = NUMBER  # cores, with all below it, also those that ended within the window
    used_cpu_s: Number = NUMBER  # of the whole tree since it began
    io: Number = NUMBER  # bytes a second, read and written by the tree
    memory_bytes: Number = NUMBER
    peak_bytes: Number = NUMBER
    # Sockets that the tree itself owns.
    sockets: Number = NUMBER  # TCP connections that are established
    received_s: Number = NUMBER  # since the last byte came over any of them
    sent_s: Number = NUMBER
    unacked: Number = NUMBER  # bytes sent and not acknowledged
    # What it writes.
    printed_s: Number = NUMBER  # since it printed anything: a file grew, or its pane changed
    transcript_s: Number = NUMBER  # since its own transcript grew
    subagents_s: Number = NUMBER  # since the transcript of any of its sub-agents grew
    # Processes below it.
    descendants: Number = NUMBER
    hidden: Number = NUMBER  # its processes that Vigil may not look into: what moves there is unknown
    children: tuple[Child, ...] = ()
