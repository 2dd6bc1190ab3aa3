"""History: what really happened, as plain values; every check reads nothing else, so a test can make one up.

All moments are seconds of the wall clock. A process is its pid and its start in ticks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

Json = dict[str, Any]


class Part(StrEnum):
    """What a process is to Vigil."""

    DAEMON = "daemon"
    KEEPER = "keeper"
    SERVER = "server"
    ROOT = "root"  # of a pane
    RECORDER = "recorder"  # the shim below it
    AGENT = "agent"
    SURVIVOR = "survivor"  # left by an agent, in a terminal session of its own


@dataclass
class Life:
    """One process, as the kernel showed it."""

    part: Part
    pid: int
    start: int
    began_at: float
    launch: str = ""
    session: str = ""
    seen_to: float = 0.0  # alive then, surely
    ended_at: float | None = None  # seen to be over then, at the latest
    status: int | None = None  # as `waitpid` has it; None: the kernel no longer knew
    ready_at: float | None = None  # a daemon's first answer
    said: str = ""  # by itself, just before its end: `exit 3`, `kill 9`

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.start

    @property
    def ending(self) -> tuple[int | None, int | None] | None:
        """Exit code and signal; None if neither the kernel nor the agent itself told."""
        if self.status is not None:
            return (None, os.WTERMSIG(self.status)) if os.WIFSIGNALED(self.status) else (os.WEXITSTATUS(self.status), None)
        how, _, number = self.said.partition(" ")
        if not number.isdigit():
            return None
        return (int(number), None) if how == "exit" else (None, int(number))

    def lives_at(self, moment: float) -> bool:
        return self.began_at <= moment and (self.ended_at is None or moment < self.ended_at)


@dataclass(frozen=True)
class Shot:
    """A signal that we sent to one process."""

    at: float
    pid: int
    start: int
    number: int
    part: Part
    launch: str = ""


class Shown(NamedTuple):
    """A session, as a list showed it."""

    name: str
    state: str
    launch: str
    pid: int | None


@dataclass(frozen=True)
class Command:
    """A command that we ran, and how it ended."""

    began_at: float
    ended_at: float
    words: tuple[str, ...]
    code: int | None  # None: it did not end in time
    out: str = ""
    err: str = ""
    shown: tuple[Shown, ...] = ()  # of `ls`

    @property
    def verb(self) -> str:
        return self.words[0]

    @property
    def took_s(self) -> float:
        return self.ended_at - self.began_at


@dataclass(frozen=True)
class Span:
    """A stretch of time with something that was so, such as a stopped keeper."""

    since: float
    until: float
    what: str
    subject: str = ""  # a session, where it is about one


@dataclass(frozen=True)
class Policy:
    """A session's restart policy, as we declared it."""

    name: str
    when: str
    base_s: float
    cap_s: float
    max_restarts: int
    role: str = ""  # whose charges it shares
    reset_after_s: float = 600.0
    runtime: str = "tmux"
    lingers: bool = False  # it ignores SIGTERM


@dataclass(frozen=True)
class DeathRow:
    """A death record of Vigil's."""

    id: str
    launch: str
    session_id: str
    session: str
    at: float
    cause: str
    exit_code: int | None
    signal: int | None
    charged: bool
    observed_by: str = ""
    uptime_s: float | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class IncidentRow:
    id: str
    kind: str
    severity: str
    session: str | None
    session_id: str | None
    opened_at: float
    resolved_at: float | None
    resolution: str = ""


@dataclass(frozen=True)
class NoticeRow:
    """What our route was handed."""

    at: float
    notice: str
    event: str
    incidents: tuple[str, ...]


@dataclass(frozen=True)
class Bystander:
    """A process of ours that Vigil has nothing to do with."""

    what: str
    pid: int
    signals: tuple[str, ...]
    alive: bool
    ended_by_us: bool = False


@dataclass(frozen=True)
class Double:
    """Two processes that were one too many, seen in two samples."""

    at: float
    session: str
    launches: tuple[str, str]
    pids: tuple[int, int]


@dataclass(frozen=True)
class Absence:
    """A socket that was gone or deaf although its process lived and ran."""

    socket: str
    since: float
    until: float


@dataclass(eq=False)  # it is itself: what is computed of it is kept
class History:
    """All of it."""

    seed: int
    began_at: float
    ended_at: float = 0.0  # of the storm; calm follows
    judged_at: float = 0.0
    policies: dict[str, Policy] = field(default_factory=dict)
    lives: list[Life] = field(default_factory=list)
    shots: list[Shot] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    faults: list[Span] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)  # what excuses lateness
    doubles: list[Double] = field(default_factory=list)
    leftovers: list[Double] = field(default_factory=list)  # a survivor beside the next launch's agent
    absences: list[Absence] = field(default_factory=list)
    bystanders: list[Bystander] = field(default_factory=list)
    out_of_memory: list[float] = field(default_factory=list)  # moments at which the host ended somebody for that
    samples: int = 0
    lateness_s: float = 0.0  # ours, at worst
    # What Vigil says, at the end
    sessions: list[Json] = field(default_factory=list)
    tables: dict[str, list[str]] = field(default_factory=dict)  # session ids that have rows, by table
    files: dict[str, list[str]] = field(default_factory=dict)  # session ids that have files, by folder
    deaths: list[DeathRow] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)  # ids, as rows and folders have them
    incidents: list[IncidentRow] = field(default_factory=list)
    notices: list[NoticeRow] = field(default_factory=list)
    words: list[str] = field(default_factory=list)  # tracebacks in its logs, each once

    def agents(self) -> Iterator[Life]:
        return (life for life in self.lives if life.part is Part.AGENT)

    def parts(self, *parts: Part) -> Iterator[Life]:
        return (life for life in self.lives if life.part in parts)

    def lives_of(self, launch: str, part: Part) -> list[Life]:
        return [life for life in self.lives if life.part is part and life.launch == launch]

    def about(self, session: str, *verbs: str) -> Iterator[Command]:
        """The commands that name a session, its role or all of them."""
        role = session.rpartition("/")[0]
        for command in self.commands:
            named = command.words[1:]
            if (session in named or (role and role in named)) and (not verbs or command.verb in verbs):
                yield command


def session_of(launch: str) -> str:
    """Return the session's id in a launch's."""
    return launch.rpartition("-")[0]


def number_of(launch: str) -> int:
    return int(launch.rpartition("-")[2])


def unexcused_s(since: float, until: float, spans: Iterable[Span]) -> float:
    """Return how much of a time none of the spans covers."""
    left, at = 0.0, since
    for span in sorted(spans, key=lambda one: one.since):
        if span.until <= at or span.since >= until:
            continue
        left += max(0.0, span.since - at)
        at = max(at, span.until)
    return left + max(0.0, until - at)
