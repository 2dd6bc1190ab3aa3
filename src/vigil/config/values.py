"""What a configuration says, as frozen values for the rest of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vigil.core.model.incident import Ladder, Quiet, Reaction
from vigil.core.model.restart import RestartPolicy
from vigil.core.model.retention import Retention
from vigil.core.model.stall import UNSAID, Watchdog, Watchdogs
from vigil.core.rules.notice import RoutePatience

LEAST_MEMORY_BYTES = 256 << 20  # room for one more agent: about 200 MB were measured in a terminal


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One kind of agent: its command, and its own process's names; empty if not given."""

    command: tuple[str, ...] = ()
    process: tuple[str, ...] = ()
    instrument: bool = True  # its launches get what its adapter adds: flags, hooks, files
    watchdog: Watchdog = UNSAID


@dataclass(frozen=True, slots=True)
class RouteConfig:
    """One way to reach people: exactly one of a command, an Apprise URL and a webhook."""

    exec: tuple[str, ...] = ()
    url: str | None = None  # or where to read it: file:, env:
    webhook: str | None = None  # likewise
    secret: str | None = None  # of a webhook's signature; likewise
    details: bool = False  # agents' own words may leave the host by it
    deadline_s: float = 30.0
    patience: RoutePatience = field(default_factory=RoutePatience)

    @property
    def by(self) -> str:
        """Return the kind of route."""
        return "exec" if self.exec else "webhook" if self.webhook is not None else "url"


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """What a launch waits for: this much available memory; 0 means no wait."""

    least_memory_bytes: int = LEAST_MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class IsolationConfig:
    """Whether launches get cgroups, and where."""

    cgroups: bool = True  # where there are any to be had
    cgroup_root: str = ""  # a folder of a cgroup2; empty: the keeper's own
    best_effort: bool = False  # limits that cannot be kept do not refuse a launch


@dataclass(frozen=True, slots=True)
class ReaperConfig:
    """When the reaper looks, and what it may do."""

    enabled: bool = True  # off: the reaper never acts by itself; `vigil reap` still does
    interval_s: float = 1800.0
    idle_ttl_s: float = 172800.0  # 0 means never
    grace_s: float = 60.0
    park_on_pressure: bool = False  # when memory is short, the longest idle session goes to sleep


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration; without arguments, that of a missing file."""

    agents: Mapping[str, AgentConfig] = field(default_factory=dict)
    routes: Mapping[str, RouteConfig] = field(default_factory=dict)
    ladders: tuple[Ladder, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    reaper: ReaperConfig = field(default_factory=ReaperConfig)
    isolation: IsolationConfig = field(default_factory=IsolationConfig)
    retention: Retention = field(default_factory=Retention)
    watchdog: Watchdog = UNSAID

    @property
    def watchdogs(self) -> Watchdogs:
        """What it says of silence, for all sessions and for each agent's."""
        return Watchdogs(
            self.watchdog, {name: agent.watchdog for name, agent in self.agents.items() if agent.watchdog != UNSAID}
        )
