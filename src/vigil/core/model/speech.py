"""Speech: what agents say of themselves; adapters make these words, and the core sees nothing else of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Activity(StrEnum):
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
    """What an agent said of itself, as one kind of word."""

    STARTED = "started"  # it is up; its conversation is known
    PROMPT = "prompt"  # a person gave it work
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
    AUTH = "auth"  # its login failed
    ERROR = "error"
    RESULT = "result"  # the end of a run of turns, with what it cost
    COMPACTED = "compacted"
    SUBAGENT_STARTED = "subagent-started"
    SUBAGENT_ENDED = "subagent-ended"
    DOES = "does"  # a plain statement of all it does: the name is an activity
    ENDED = "ended"  # it says that it leaves; the process axis tells of the end
    ALIVE = "alive"  # a sign of life that says nothing more
    SPEAKS = "speaks"  # the model answers: a retry is over
    TICKS = "ticks"  # its clock runs: something is open, working or hung; no progress
    UNKNOWN = "unknown"  # an event that is not listed: a sign of life, with its name


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input
    cost_usd: float | None = None
    so_far: bool = False  # a running total of the conversation


@dataclass(frozen=True, slots=True)
class Said:
    what: What
    at: float | None = None  # as the agent has it; None: when it was read
    name: str = ""  # of a tool, a model, a kind of sub-agent, an unknown event
    id: str = ""  # of a tool call, a question, a sub-agent: what ends it has the same
    text: str = ""  # a few words for people; never a prompt, a tool's input or an answer
    until: float | None = None
    conversation: str = ""
    usage: Usage | None = None
    failed: bool = False  # of a tool, a turn, a result
    subagent: str = ""  # whose words these are; not what the agent itself does
    request: str = ""  # a question's second id, by which it may be taken back


@dataclass(frozen=True, slots=True)
class Hook:
    launch_id: str
    name: str  # the event's name; empty if it has none
    at: float
    said: tuple[Said, ...] = ()  # nothing: a sign of life
