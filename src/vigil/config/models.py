"""The tables of config.toml: their keys, types and ranges. Each value is judged by itself."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from vigil.config.durations import AFTER, AGE, BACKOFF, DEADLINE, IDLE, ORDINARY
from vigil.config.hours import Zone, read_hour
from vigil.config.sizes import read_size
from vigil.config.values import IsolationConfig, LaunchConfig, ReaperConfig
from vigil.config.wording import shown
from vigil.core.model import incident
from vigil.core.model.identity import why_not_a_name
from vigil.core.model.incident import IncidentKind, Severity
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.retention import Retention
from vigil.core.model.stall import Thresholds

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")
MOST_RESTARTS = 1_000_000
MOST_TRIES = 100
RESTART, LAUNCH, REAPER, SILENCE = RestartPolicy(), LaunchConfig(), ReaperConfig(), Thresholds()  # the defaults
ISOLATION, RETENTION = IsolationConfig(), Retention()
MOST_KEPT = 10_000_000


def one_of(kind: type[E], value: object) -> E:
    for member in kind:
        if value == member.value:
            return member
    *others, last = kind
    raise ValueError(f"{shown(value)} is not {', '.join(others)} or {last}")


def _name(name: str) -> str:
    why = why_not_a_name(name)
    if why is not None:
        raise ValueError(why)
    return name


def _word(word: str) -> str:
    if "\0" in word:
        raise ValueError("a NUL character cannot be handed to a program")
    return word


def _absolute(path: str) -> str:
    if path and not path.startswith("/"):
        raise ValueError(f"{shown(path)} is not an absolute path")
    return _word(path)


def some(value: list[T] | str) -> list[T] | str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _command(words: list[str]) -> list[str]:
    if not words or not words[0]:
        raise ValueError("must begin with a program")
    return words


def count(value: int) -> int:
    if not 0 <= value <= MOST_RESTARTS:
        raise ValueError(f"{shown(value)} is out of range: 0 to {MOST_RESTARTS}, 0 for no limit")
    return value


def _tries(value: int) -> int:
    if not 1 <= value <= MOST_TRIES:
        raise ValueError(f"{shown(value)} is out of range: 1 to {MOST_TRIES}")
    return value


def _kept(value: int) -> int:
    if not 1 <= value <= MOST_KEPT:
        raise ValueError(f"{shown(value)} is out of range: 1 to {MOST_KEPT}")
    return value


def _team(name: str) -> str:
    for part in name.split("/", 1):
        _name(part)
    return name


def _source(source: str) -> str:
    """Check where a secret stands; the message never shows the secret itself."""
    if source.startswith("env:") and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", source.removeprefix("env:")):
        raise ValueError("env: needs the name of a variable")
    if source.startswith("file:") and not source.removeprefix("file:").startswith(("/", "~/")):
        raise ValueError("file: needs a path that begins with / or ~/")
    return source


def _url(source: str) -> str:
    if not source.startswith(("env:", "file:")) and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", source):
        raise ValueError("is no URL, nor file: or env: and where to read one")
    return _source(source)


def _http(source: str) -> str:
    if not source.startswith(("env:", "file:", "http://", "https://")):
        raise ValueError("must begin with https:// or http://, or be file: or env: and where to read it")
    return _source(source)


Name = Annotated[str, AfterValidator(_name)]
Word = Annotated[str, AfterValidator(_word)]
FilledWord = Annotated[Word, AfterValidator(some)]
Command = Annotated[list[Word], AfterValidator(_command)]
Duration = Annotated[float, BeforeValidator(ORDINARY.read)]
Backoff = Annotated[float, BeforeValidator(BACKOFF.read)]


class Table(BaseModel):
    """A table of the file: an unknown key is an error, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ConfigWatchdog(Table):
    """`[watchdog]`: when silence becomes a warning; an agent's table falls back on the general one."""

    stall_after: Duration = SILENCE.stall_after_s
    tool_timeout: Duration = SILENCE.tool_timeout_s
    mcp_tool_timeout: Duration = SILENCE.mcp_tool_timeout_s
    subagent_timeout: Duration = SILENCE.subagent_timeout_s
    approval_reminder: Duration = SILENCE.approval_reminder_s
    stall_repeat_seconds: Duration = SILENCE.stall_repeat_s
    liveness_timeout: Duration = SILENCE.liveness_timeout_s
    stall_auto_kill: bool = SILENCE.stall_auto_kill


class ReaperTable(Table):
    """`[reaper]`: when an idle session is put to sleep; an `idle_ttl` of 0 means never."""

    enabled: bool = REAPER.enabled
    interval: Duration = REAPER.interval_s
    idle_ttl: Annotated[float, BeforeValidator(IDLE.read)] = REAPER.idle_ttl_s
    grace: Duration = REAPER.grace_s
    park_on_pressure: bool = REAPER.park_on_pressure


class ConfigBackoff(Table):
    """`restart.backoff`: how long a restart waits."""

    base: Backoff = RESTART.base_s
    cap: Backoff = Field(default=RESTART.cap_s, validate_default=True)  # also checked against a base longer than the default
    reset_after: Backoff = RESTART.reset_after_s

    @field_validator("cap")
    @classmethod
    def _holds_base(cls, cap: float, info: ValidationInfo) -> float:
        base = info.data.get("base", cap)  # an invalid base is missing
        if cap < base:
            raise ValueError(f"{cap:g} s is shorter than base, which is {base:g} s")
        return cap


class RestartTable(Table):
    """`[restart]`: when and how fast a session comes back by default."""

    policy: Annotated[RestartWhen, BeforeValidator(partial(one_of, RestartWhen))] = RESTART.when
    max_restarts: Annotated[int, AfterValidator(count)] = RESTART.max_restarts
    backoff: ConfigBackoff = ConfigBackoff()


class LaunchTable(Table):
    """`[launch]`: what a launch needs first; a `least_memory` of 0 asks for none."""

    least_memory: Annotated[int, BeforeValidator(read_size)] = LAUNCH.least_memory_bytes


class IsolationTable(Table):
    """`[isolation]`: whether each launch gets a cgroup of its own, and where."""

    cgroups: bool = ISOLATION.cgroups
    cgroup_root: Annotated[str, AfterValidator(_absolute)] = ISOLATION.cgroup_root
    best_effort: bool = ISOLATION.best_effort


class RetentionTable(Table):
    """`[retention]`: how much of the past is kept; an age of 0 means no limit."""

    events: Annotated[int, AfterValidator(_kept)] = RETENTION.events
    deaths: Annotated[int, AfterValidator(_kept)] = RETENTION.deaths
    incidents: Annotated[int, AfterValidator(_kept)] = RETENTION.incidents
    age: Annotated[float, BeforeValidator(AGE.read)] = RETENTION.age_s
    bundles: Annotated[int, AfterValidator(_kept)] = RETENTION.bundles
    bundle_age: Annotated[float, BeforeValidator(AGE.read)] = RETENTION.bundle_age_s
    bundle_bytes: Annotated[int, BeforeValidator(read_size)] = RETENTION.bundle_bytes


class AgentTable(Table):
    """`[agents.NAME]`: a kind of agent."""

    command: Command = []
    process: Annotated[list[FilledWord], AfterValidator(some)] = []
    instrument: bool = True
    watchdog: ConfigWatchdog = ConfigWatchdog()


class RouteTable(Table):
    """`[routes.NAME]`: a way to reach a human."""

    exec: Command = []
    url: Annotated[FilledWord, AfterValidator(_url)] | None = None
    webhook: Annotated[FilledWord, AfterValidator(_http)] | None = None
    secret: Annotated[FilledWord, AfterValidator(_source)] | None = None
    details: bool = False
    timeout: Annotated[float, BeforeValidator(DEADLINE.read)] = 30.0
    attempts: Annotated[int, AfterValidator(_tries)] = 8
    retry: Backoff = 5.0


class StepTable(Table):
    """One step of a ladder."""

    route: str
    after: Annotated[float, BeforeValidator(AFTER.read)] = 0.0
    repeat: Annotated[float | None, BeforeValidator(ORDINARY.read)] = None


class LadderTable(Table):
    """`[[ladder]]`: who is told of what, and when."""

    severity: Annotated[Severity | None, BeforeValidator(partial(one_of, Severity))] = None
    kind: Annotated[IncidentKind | None, BeforeValidator(partial(one_of, IncidentKind))] = None
    team: Annotated[str, AfterValidator(_team)] | None = None
    steps: list[StepTable]  # none: such an incident reaches no route


class QuietTable(Table):
    """`[[quiet]]`: from when to when the routes stay silent, and what passes all the same."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True, arbitrary_types_allowed=True)

    from_: Annotated[float, BeforeValidator(read_hour)] = Field(alias="from")
    to: Annotated[float, BeforeValidator(read_hour)]
    timezone: Annotated[Zone, BeforeValidator(Zone.read)] = Zone()
    passes: list[Annotated[Severity, BeforeValidator(partial(one_of, Severity))]] = [Severity.URGENT]
    team: Annotated[str, AfterValidator(_team)] | None = None


class ReactionVerb(StrEnum):
    """What can be done about an incident."""

    PROMPT = incident.PROMPT
    RESTART = incident.RESTART
    HIBERNATE = incident.HIBERNATE
    RUN = incident.RUN


class ReactionTable(Table):
    """`[[reaction]]`: what Vigil does about an incident before it tells a person."""

    kind: Annotated[IncidentKind, BeforeValidator(partial(one_of, IncidentKind))]
    do: Annotated[ReactionVerb, BeforeValidator(partial(one_of, ReactionVerb))]
    budget: Annotated[int, AfterValidator(_tries)] = 2
    after: Annotated[float, BeforeValidator(AFTER.read)] = 0.0
    every: Duration = 300.0
    text: FilledWord | None = None
    command: Command | None = None
    team: Annotated[str, AfterValidator(_team)] | None = None


class ConfigTables(Table):
    """The whole file."""

    watchdog: ConfigWatchdog = ConfigWatchdog()
    reaper: ReaperTable = ReaperTable()
    restart: RestartTable = RestartTable()
    launch: LaunchTable = LaunchTable()
    isolation: IsolationTable = IsolationTable()
    retention: RetentionTable = RetentionTable()
    agents: dict[Name, AgentTable] = {}
    routes: dict[Name, RouteTable] = {}
    ladder: list[LadderTable] = []
    quiet: list[QuietTable] = []
    reaction: list[ReactionTable] = []
