"""The tables of a manifest: their keys, types and ranges. Each value is judged by itself.

They also make the JSON Schema: beside our own checks stands what pydantic cannot know of them.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from vigil.agents.kinds import KINDS
from vigil.config.durations import AFTER, BACKOFF, DAY_S, IDLE, ORDINARY, WORDS, Range
from vigil.config.models import MOST_RESTARTS, Command, Name, Table, Word, count, one_of, some
from vigil.config.models import ConfigWatchdog as ConfigWatchdogTable
from vigil.config.sizes import (
    LEAST_MEMORY_BYTES,
    LEAST_PIDS,
    MOST_BYTES,
    MOST_PIDS,
    MOST_WEIGHT,
    read_memory_max,
    read_pids_max,
    read_weight,
)
from vigil.config.wording import shown
from vigil.core.model.identity import PART
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.sandbox import SandboxKind

MOST_TEAMS = 200
MOST_ROLES = 1000
MOST_REPLICAS = 1000
MOST_REPLICAS_IN_ALL = 5000
MOST_FAILURES = 100
GRACE_S = 10.0  # for the first sign of life, at least
RETRY = Range("1 s to 24 h, or 0 to wait for a person", 1, DAY_S, or_zero=True)
RESTART = RestartPolicy()  # the defaults
WATCHDOG = ConfigWatchdogTable()


class AfterCrash(StrEnum):
    """How a replica comes back after a crash."""

    FRESH = "fresh"
    RESUME = "resume"


class HeartbeatBy(StrEnum):
    """Who sends the heartbeat."""

    HOOKS = "hooks"
    COMMAND = "command"


def _replicas(value: int) -> int:
    if not 0 <= value <= MOST_REPLICAS:
        raise ValueError(f"{shown(value)} is out of range: 0 to {MOST_REPLICAS}")
    return value


def _failures(value: int) -> int:
    if not 1 <= value <= MOST_FAILURES:
        raise ValueError(f"{shown(value)} is out of range: 1 to {MOST_FAILURES}")
    return value


def _variable(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise ValueError("is no name of a variable: it must not be empty nor hold = or NUL")
    return name


def _integers(low: int, high: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


def _words(kind: type[StrEnum]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": [str(word) for word in kind]})


def _duration(range_: Range) -> WithJsonSchema:
    """Return the schema of a duration: it can give the range of seconds, not that of words."""
    forms: list[dict[str, Any]] = [
        {"type": "number", "minimum": range_.low_s, "maximum": range_.high_s},
        {"type": "string", "pattern": f"^{WORDS.pattern}$"},
    ]
    forms += [{"const": 0}] if range_.or_zero else []
    return WithJsonSchema({"$comment": f"a duration: {range_.words}", "anyOf": forms})


NAME_SCHEMA = {"type": "string", "pattern": f"^{PART.pattern}$"}
COMMAND_SCHEMA = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "prefixItems": [{"type": "string", "minLength": 1}],
}
AGENT_SCHEMA = {"anyOf": [{"enum": list(KINDS)}, NAME_SCHEMA]}  # the known ones first, for editors to offer
ENVIRONMENT_SCHEMA = {
    "type": "object",
    "propertyNames": {"pattern": "^[^=]+$"},
    "additionalProperties": {"type": "string"},
}
MEMORY_SCHEMA = {
    "$comment": "a size: 16M to 1024T",
    "anyOf": [
        {"type": "integer", "minimum": LEAST_MEMORY_BYTES, "maximum": MOST_BYTES},
        {"type": "string", "pattern": "^[0-9]+([KMGTkmgt]([iI]?[bB])?|[bB])?$"},
    ],
}
PartName = Annotated[Name, WithJsonSchema(NAME_SCHEMA)]
AgentName = Annotated[str, WithJsonSchema(AGENT_SCHEMA)]  # the configuration says which ones exist
Argv = Annotated[Command, WithJsonSchema(COMMAND_SCHEMA)]
Folder = Annotated[Word, AfterValidator(some), WithJsonSchema({"type": "string", "minLength": 1})]
Paths = Annotated[list[Folder], WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}})]
Confined = Annotated[SandboxKind, BeforeValidator(partial(one_of, SandboxKind)), _words(SandboxKind)]
Environment = Annotated[dict[Annotated[str, AfterValidator(_variable)], Word], WithJsonSchema(ENVIRONMENT_SCHEMA)]
Duration = Annotated[float, BeforeValidator(ORDINARY.read), _duration(ORDINARY)]
Backoff = Annotated[float, BeforeValidator(BACKOFF.read), _duration(BACKOFF)]
Idle = Annotated[float, BeforeValidator(IDLE.read), _duration(IDLE)]
Retry = Annotated[float, BeforeValidator(RETRY.read), _duration(RETRY)]
Grace = Annotated[float, BeforeValidator(AFTER.read), _duration(AFTER)]
Restart = Annotated[RestartWhen, BeforeValidator(partial(one_of, RestartWhen)), _words(RestartWhen)]
Runtime = Annotated[RuntimeKind, BeforeValidator(partial(one_of, RuntimeKind)), _words(RuntimeKind)]
Crashed = Annotated[AfterCrash, BeforeValidator(partial(one_of, AfterCrash)), _words(AfterCrash)]
Sender = Annotated[HeartbeatBy, BeforeValidator(partial(one_of, HeartbeatBy)), _words(HeartbeatBy)]
Replicas = Annotated[int, AfterValidator(_replicas), _integers(0, MOST_REPLICAS)]
Restarts = Annotated[int, AfterValidator(count), _integers(0, MOST_RESTARTS)]
Failures = Annotated[int, AfterValidator(_failures), _integers(1, MOST_FAILURES)]


MemoryMax = Annotated[int, BeforeValidator(read_memory_max), WithJsonSchema(MEMORY_SCHEMA)]
PidsMax = Annotated[int, AfterValidator(read_pids_max), _integers(LEAST_PIDS, MOST_PIDS)]
Weight = Annotated[int, AfterValidator(read_weight), _integers(1, MOST_WEIGHT)]


class ManifestTable(Table):
    """A table of a manifest; as strict as one of the configuration."""


class BackoffTable(ManifestTable):
    """How long a restart waits; what is not given is as in `[restart]` of the configuration."""

    base: Backoff = Field(default=RESTART.base_s, description="The wait before the first restart; each further one doubles it.")
    cap: Backoff = Field(default=RESTART.cap_s, description="The longest wait; not shorter than base.")
    reset_after: Backoff = Field(
        default=RESTART.reset_after_s, description="After so long without a death the count begins anew; not shorter than cap."
    )


class HealthTable(ManifestTable):
    """A sign of life that the role promises."""

    heartbeat: Duration = Field(description="How often a sign of life comes.")
    failures: Failures = Field(default=3, description="So many missed in a row, and it is ended and comes back.")
    grace: Grace | None = Field(
        default=None, description="How long the first sign may take; default: as long as heartbeat, and 10 s at least."
    )
    heartbeat_by: Sender | None = Field(
        default=None,
        description="Who sends it: hooks (default where the agent has them), or command: it calls vigil heartbeat.",
    )


class WatchdogTable(ManifestTable):
    """When silence is worth a word; what is not given is as in `[watchdog]` of the configuration."""

    stall_after: Duration = Field(
        default=WATCHDOG.stall_after, description="Silence with an open turn before the first warning."
    )
    tool_timeout: Duration = Field(default=WATCHDOG.tool_timeout, description="How long a tool may run.")
    mcp_tool_timeout: Duration = Field(
        default=WATCHDOG.mcp_tool_timeout, description="How long a tool of an MCP server may run."
    )
    subagent_timeout: Duration = Field(default=WATCHDOG.subagent_timeout, description="How long a sub-agent may run.")
    approval_reminder: Duration = Field(
        default=WATCHDOG.approval_reminder, description="After so long a question is told again."
    )
    stall_repeat_seconds: Duration = Field(
        default=WATCHDOG.stall_repeat_seconds, description="How often a warning is repeated."
    )
    liveness_timeout: Duration = Field(
        default=WATCHDOG.liveness_timeout, description="Without any sign for so long it is stalled."
    )
    stall_auto_kill: bool = Field(
        default=WATCHDOG.stall_auto_kill,
        description="End a stalled replica; needs liveness_timeout beside it.",
    )


class RoleTable(ManifestTable):
    """A role: replicas that are all alike."""

    name: PartName = Field(description="Its name, once in its team.")
    replicas: Replicas = Field(default=1, description="How many there are; 0 keeps the role and runs none.")
    agent: AgentName | None = Field(
        default=None, description="What runs: a known kind of agent, or one of the configuration (default: by the program)."
    )
    command: Argv | None = Field(
        default=None, description="A program and its arguments, which no shell reads; optional where the agent has a default."
    )
    runtime: Runtime = Field(default=RuntimeKind.TMUX, description="Where it runs.")
    cwd: Folder = Field(
        default=".", description="The folder it works in; ~ is your home, a relative one begins at the manifest."
    )
    env: Environment = Field(default={}, description="What is added to its environment; kept apart and never shown.")
    sandbox: Confined | None = Field(
        default=None, description="Confines it: it sees its folder, the system read-only, and the paths below."
    )
    sandbox_read: Paths = Field(default=[], description="What else a confined agent may read; ~ is your home.")
    sandbox_write: Paths = Field(default=[], description="What else a confined agent may read and write, such as ~/.claude.")
    sandbox_network: bool = Field(default=True, description="Whether a confined agent has the network.")
    restart: Restart = Field(default=RestartWhen.ON_FAILURE, description="After which deaths it comes back.")
    max_restarts: Restarts = Field(
        default=RESTART.max_restarts, description="Charged restarts before the role is given up; 0 is no limit."
    )
    backoff: BackoffTable = Field(default=BackoffTable(), description="How long a restart waits.")
    autostart: bool = Field(default=False, description="It comes back by itself after a reboot.")
    after_crash: Crashed = Field(
        default=AfterCrash.FRESH, description="How it comes back after a crash: anew, or with its conversation."
    )
    retry_saturated: Retry = Field(
        default=0.0, description="One trial so long after the role was given up; 0 waits for a person."
    )
    idle_ttl: Idle = Field(
        default=48 * 3600.0, description="After so long without any activity it is put to sleep; 0 is never."
    )
    memory_max: MemoryMax | None = Field(
        default=None, description="How much memory each replica may use; needs a cgroup2, as the next two."
    )
    pids_max: PidsMax | None = Field(default=None, description="How many processes and threads each replica may have.")
    cpu_weight: Weight | None = Field(default=None, description="Its share when cores are short; others have 100.")
    health: HealthTable | None = Field(default=None, description="A sign of life that the role promises.")
    watchdog: WatchdogTable = Field(default=WatchdogTable(), description="When silence is worth a word.")


class TeamTable(ManifestTable):
    """A team: roles that belong together."""

    name: PartName = Field(description="Its name, once in the workspace.")
    role: Annotated[list[RoleTable], AfterValidator(some)] = Field(
        description="Its roles.", json_schema_extra={"minItems": 1, "maxItems": MOST_ROLES}
    )


class ManifestFile(ManifestTable):
    """The teams of one workspace."""

    workspace: PartName = Field(description="The name that all sessions of this file begin with.")
    team: Annotated[list[TeamTable], AfterValidator(some)] = Field(
        description="Its teams.", json_schema_extra={"minItems": 1, "maxItems": MOST_TEAMS}
    )
