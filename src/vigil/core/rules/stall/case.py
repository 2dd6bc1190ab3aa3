"""Case: a silent agent is judged by its words, the sensors' readings and its patience (DESIGN 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vigil.core.model.evidence import Child, Evidence, Number
from vigil.core.model.launch import Mode, RuntimeKind
from vigil.core.model.progress import SAID_NOTHING, UNHEARD, Doing, Open, Trail
from vigil.core.model.session import Session, State
from vigil.core.model.stall import DEFAULTS, Thresholds

WINDOW_S = 60.0  # shorter rates say little where the threshold is long
FRESH_S = 120.0  # bytes and lines younger than this are progress: silent thinking of 60 to 120 s is usual
WAIT_GRACE_S = 60.0  # a declared wait may end so late
WAIT_MOST_S = 1800.0  # and without an end it is believed so long
LIMBO_S = 60.0  # a healthy agent is gone 10 to 35 s after its last answer
TOOL_SLACK_S = 2.0  # a tool's process may begin so long before the agent tells of the tool
GONE = ("Z", "X")
MCP = ("mcp__", "mcp_tool_call", "mcp:")
SUBAGENT_TOOLS = frozenset({"Task", "Agent", "task", "agent", "collab_tool_call"})
WATCHED = frozenset({State.STARTING, State.RUNNING})


@dataclass(frozen=True)
class Silence:
    """The case of a silent agent: its words, and what the sensors read of it."""

    now: float
    evidence: Evidence
    doing: Doing = UNHEARD
    trail: Trail = SAID_NOTHING
    limits: Thresholds = DEFAULTS
    silent_from: float = 0.0
    started_at: float = 0.0
    idle_cpu: float | None = None  # learned of this kind of agent while it waits for input
    runs_to_its_end: bool = False  # headless without input: it ends after its result
    speaks: bool = False  # this kind of agent says what it does, or has not been found yet
    resumed: bool = False  # it took up a conversation
    stalled_before: bool = False  # which had stalled already

    @property
    def silent_s(self) -> float:
        return max(0.0, self.now - self.silent_from)

    @cached_property
    def patience_s(self) -> float:
        """How long the agent of this case may be silent with what it has open."""
        return patience_of(self.doing, self.trail, self.limits)

    @property
    def fresh_s(self) -> float:
        """How young a silent agent's last byte must be to count as progress."""
        return min(FRESH_S, self.limits.stall_after_s / 2)

    @property
    def tool_age_s(self) -> float | None:
        return self.now - min(one.since for one in self.doing.tools) if self.doing.tools else None

    @cached_property
    def own(self) -> tuple[Child, ...] | None:
        """The processes in this case that began with or after an open tool; None: unknown."""
        age_s = self.tool_age_s
        if age_s is None:
            return ()
        if self.evidence.descendants.value is None:
            return None
        alive = [child for child in self.evidence.children if child.below and child.state not in GONE]
        if any(child.age_s is None for child in alive):
            return None
        return tuple(child for child in alive if child.age_s is not None and child.age_s <= age_s + TOOL_SLACK_S)

    def window_is_long_enough(self) -> bool:
        window_s = self.evidence.window_s.value
        return window_s is not None and window_s >= min(WINDOW_S, self.limits.stall_after_s / 5) / 4

    def rate(self, number: Number) -> float | None:
        """Return a rate from a silent agent's evidence; None if its window was too short."""
        return number.value if self.window_is_long_enough() else None

    def is_fresh(self, number: Number) -> bool | None:
        """Say whether a silent agent's evidence shows something within `fresh_s`."""
        return None if number.value is None else number.value <= self.fresh_s


def patience_of(doing: Doing, trail: Trail, limits: Thresholds) -> float:
    """Return the patience with a silent agent, by what it has open."""
    return what_is_open(doing, trail, limits)[1]


def what_is_open(doing: Doing, trail: Trail, limits: Thresholds) -> tuple[str, float]:
    """Return what a silent agent has open, in a word, and the patience with that."""
    if doing.asked:
        return "approval", limits.approval_reminder_s
    if trail.result_at is not None and not doing.turn:
        return "finished", min(LIMBO_S, limits.stall_after_s)
    if any(is_mcp(one) for one in doing.tools):
        return "mcp tool", limits.mcp_tool_timeout_s
    if any(one.name in SUBAGENT_TOOLS for one in doing.tools) or (doing.turn and trail.subagents):
        return "sub-agent", limits.subagent_timeout_s
    if doing.tools:
        return "tool", limits.tool_timeout_s
    return "turn", limits.stall_after_s


def is_mcp(tool: Open) -> bool:
    return tool.name.startswith(MCP)


def waits_until(doing: Doing, since: float) -> float:
    """Return until when Vigil believes a silent agent's declared wait."""
    return since + WAIT_MOST_S if doing.until is None else doing.until + WAIT_GRACE_S


def tools_wait_until(doing: Doing) -> float | None:
    """Return until when a silent agent's open tools wait; None if one names no moment."""
    moments = [one.until for one in doing.tools]
    named = [until for until in moments if until is not None]
    return min(named) + WAIT_GRACE_S if named and len(named) == len(moments) else None


def is_watched(session: Session) -> bool:
    """Say whether a session is watched: it has something open, or has not spoken yet."""
    launch, doing, trail = session.launch, session.vitals.doing, session.vitals.trail
    if session.state not in WATCHED or launch is None or launch.process is None or launch.ended_at is not None:
        return False
    if doing.turn or doing.tools or doing.asked or doing.retries or doing.waits:
        return True
    if not trail.spoke:
        return ought_to_speak(session)
    return trail.result_at is not None and runs_to_its_end(session)


def runs_to_its_end(session: Session) -> bool:
    """Say whether a silent agent should end with its result; others wait for prompts."""
    launch = session.launch
    return session.spec.runtime is RuntimeKind.HEADLESS and launch is not None and not launch.reads_input


def ought_to_speak(session: Session) -> bool:
    """Say whether complete silence is late: the agent spoke before, starts, or its kind speaks."""
    launch = session.launch
    return session.vitals.trail.spoke_before or session.state is State.STARTING or (launch is not None and launch.speaks)


def silent_from(session: Session) -> float:
    """Return since when a session is silent, not counting time when Vigil did not listen."""
    started_at = session.launch.started_at if session.launch is not None else None
    return max(session.last_activity_at or 0.0, started_at or 0.0, session.vitals.trail.floor)


def case_of(session: Session, evidence: Evidence, limits: Thresholds, idle_cpu: float | None, now: float) -> Silence:
    launch = session.launch
    assert launch is not None
    return Silence(
        now,
        evidence,
        session.vitals.doing,
        session.vitals.trail,
        limits,
        silent_from(session),
        launch.started_at or launch.created_at,
        idle_cpu=idle_cpu,
        runs_to_its_end=runs_to_its_end(session),
        speaks=ought_to_speak(session),
        resumed=launch.mode is Mode.RESUME,
        stalled_before=session.strikes > 0 and not session.vitals.doing.retries,
    )


def kind_of(session: Session) -> str:
    """Return the kind under which a silent agent's idle CPU is learned; commands by program."""
    return session.spec.agent if session.spec.agent != "generic" else f"generic {session.spec.command[0]}"
