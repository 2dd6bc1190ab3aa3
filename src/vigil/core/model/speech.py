"""Speech: what agents say of themselves, in words that are no agent's own.

An adapter makes these of hooks, streams and transcripts. The core looks at nothing else of an agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Activity(StrEnum):
    """What an agent is doing."""

    STARTING = "starting"
    WORKING = "working"
    THINKING = "thinking"
    TOOL = "tool"
    WAITING_HUMAN = "waiting-human"
    WAITING_TIMER = "waiting-timer"
    THROTTLED = "throttled"
    IDLE = "idle"
    UNKNOWN = "unknown"


class What(StrEnum):
    """What was said."""

    STARTED = "started"  # it is up; its conversation is known
    PROMPT = "prompt"  # somebody gave it something to do
    TURN_STARTED = "turn-started"
    THINKS = "thinks"  # the model was asked, and its answer is waited for
    TURN_ENDED = "turn-ended"
    TOOL_STARTED = "tool-started"
    TOOL_ENDED = "tool-ended"
    WAITS = "waits"  # for a moment it named: until
    ASKED = "asked"  # it needs a person: a permission, a question
    ANSWERED = "answered"
    RETRIES = "retries"  # the model did not answer, and it tries again: until
    LIMIT = "limit"  # an account's limit ends it: until, if it says when
    AUTH = "auth"  # nobody lets it in
    ERROR = "error"
    RESULT = "result"  # the end of a run of turns, with what it cost
    COMPACTED = "compacted"
    SUBAGENT_STARTED = "subagent-started"
    SUBAGENT_ENDED = "subagent-ended"
    DOES = "does"  # it says plainly what it does, and that is all of it: the name is an activity
    ENDED = "ended"  # it says that it goes; that the process ends is for the process axis to say
    ALIVE = "alive"  # a sign of life that says nothing more
    SPEAKS = "speaks"  # words of the model come: if it was to be tried again, that is over
    TICKS = "ticks"  # its clock says that something of it is still open, whether that works or hangs: no sign of progress
    UNKNOWN = "unknown"  # a kind of event that nobody listed: its name is told, and it is a sign of life


@dataclass(frozen=True, slots=True)
class Usage:
    """What something cost, as far as the agent says."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input
    cost_usd: float | None = None
    so_far: bool = False  # these are of the whole conversation up to here, and not of this piece alone


@dataclass(frozen=True, slots=True)
class Said:
    """One thing an agent said."""

    what: What
    at: float | None = None  # as the agent has it; None: when it was read
    name: str = ""  # of a tool, a model, a kind of sub-agent, an event nobody knows
    id: str = ""  # of a tool call, a question, a sub-agent: what ends it has the same
    text: str = ""  # a few words for people; never a prompt, a tool's input or an answer
    until: float | None = None
    conversation: str = ""
    usage: Usage | None = None
    failed: bool = False  # of a tool, a turn, a result
    subagent: str = ""  # whose words these are: they do not say what the agent itself is doing
    request: str = ""  # of a question: another id, under which it may be taken back


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook event as it was read."""

    launch_id: str
    name: str  # the event's name; empty if it has none
    at: float
    said: tuple[Said, ...] = ()  # nothing: a sign of life
