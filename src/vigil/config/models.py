"""The tables of config.toml: which keys there are, of which type and range. Each value is judged by itself."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from vigil.config.durations import AFTER, BACKOFF, IDLE, ORDINARY
from vigil.config.sizes import read_size
from vigil.config.values import LaunchConfig
from vigil.config.wording import shown
from vigil.core.identity import why_not_a_name
from vigil.core.model import IncidentKind, RestartPolicy, RestartWhen, Severity

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

MOST_RESTARTS = 1_000_000
RESTART, LAUNCH = RestartPolicy(), LaunchConfig()  # the defaults


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


Name = Annotated[str, AfterValidator(_name)]
Word = Annotated[str, AfterValidator(_word)]
FilledWord = Annotated[Word, AfterValidator(some)]
Command = Annotated[list[Word], AfterValidator(_command)]
Duration = Annotated[float, BeforeValidator(ORDINARY.read)]
Backoff = Annotated[float, BeforeValidator(BACKOFF.read)]


class Table(BaseModel):
    """A table of the file: a key it does not know is an error, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class WatchdogTable(Table):
    """`[watchdog]`: when silence becomes a warning."""

    stall_after: Duration = 300.0
    tool_timeout: Duration = 600.0
    mcp_tool_timeout: Duration = 900.0
    subagent_timeout: Duration = 900.0
    approval_reminder: Duration = 600.0
    stall_repeat_seconds: Duration = 180.0
    liveness_timeout: Duration = 600.0
    stall_auto_kill: bool = False


class ReaperTable(Table):
    """`[reaper]`: when an idle session is put to sleep; an `idle_ttl` of 0 is never."""

    enabled: bool = True
    interval: Duration = 1800.0
    idle_ttl: Annotated[float, BeforeValidator(IDLE.read)] = 172800.0
    grace: Duration = 60.0


class BackoffTable(Table):
    """`restart.backoff`: how long a restart waits."""

    base: Backoff = RESTART.base_s
    cap: Backoff = Field(default=RESTART.cap_s, validate_default=True)  # also against a base that is longer than the default
    reset_after: Backoff = RESTART.reset_after_s

    @field_validator("cap")
    @classmethod
    def _holds_base(cls, cap: float, info: ValidationInfo) -> float:
        base = info.data.get("base", cap)  # a base that is wrong itself is not there
        if cap < base:
            raise ValueError(f"{cap:g} s is shorter than base, which is {base:g} s")
        return cap


class RestartTable(Table):
    """`[restart]`: when and how fast a session comes back if nothing else is said."""

    policy: Annotated[RestartWhen, BeforeValidator(partial(one_of, RestartWhen))] = RESTART.when
    max_restarts: Annotated[int, AfterValidator(count)] = RESTART.max_restarts
    backoff: BackoffTable = BackoffTable()


class LaunchTable(Table):
    """`[launch]`: what there must be before anything is launched; a `least_memory` of 0 asks for none."""

    least_memory: Annotated[int, BeforeValidator(read_size)] = LAUNCH.least_memory_bytes


class AgentTable(Table):
    """`[agents.NAME]`: a kind of agent."""

    command: Command = []
    process: Annotated[list[FilledWord], AfterValidator(some)] = []
    instrument: bool = True


class RouteTable(Table):
    """`[routes.NAME]`: a way to reach a human."""

    exec: Command = []
    url: FilledWord | None = None


class StepTable(Table):
    """One step of a ladder."""

    route: str
    after: Annotated[float, BeforeValidator(AFTER.read)] = 0.0
    repeat: Annotated[float | None, BeforeValidator(ORDINARY.read)] = None


class LadderTable(Table):
    """`[[ladder]]`: who is told of what, and when."""

    severity: Annotated[Severity | None, BeforeValidator(partial(one_of, Severity))] = None
    kind: Annotated[IncidentKind | None, BeforeValidator(partial(one_of, IncidentKind))] = None
    steps: list[StepTable]  # none: nobody is told


class File(Table):
    """The whole file."""

    watchdog: WatchdogTable = WatchdogTable()
    reaper: ReaperTable = ReaperTable()
    restart: RestartTable = RestartTable()
    launch: LaunchTable = LaunchTable()
    agents: dict[Name, AgentTable] = {}
    routes: dict[Name, RouteTable] = {}
    ladder: list[LadderTable] = []
