"""Progress: what an agent has open, its last words, and what was counted of its launch."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.speech import What


@dataclass(frozen=True, slots=True)
class Recent:
    """One word as it is remembered: never a prompt, a tool's input or an answer."""

    at: float
    what: What
    name: str = ""  # of a tool, a model, a kind of sub-agent
    text: str = ""
    id: str = ""
    source: str = ""  # hook, stream, transcript or screen
    failed: bool = False
    subagent: str = ""
    times: int = 1  # so often in a row, this being the first


@dataclass(frozen=True, slots=True)
class Open:
    """A tool that runs, or a question that waits."""

    id: str
    name: str
    since: float
    until: float | None = None  # it is to wait, and no longer than this
    request: str = ""  # another id of a question, under which it is taken back


@dataclass(frozen=True, slots=True)
class Doing:
    """What is open of an agent's work."""

    turn: bool = False
    thinks: bool = False
    tools: tuple[Open, ...] = ()
    asked: tuple[Open, ...] = ()
    waits: bool = False  # it declared a wait
    retries: bool = False  # the model does not answer, or a wall holds it
    held: str = ""  # by which wall: limit, auth
    until: float | None = None  # when it goes on, if it said so
    started: bool = False  # it has said what it does


UNHEARD = Doing()
IDLE = Doing(started=True)


@dataclass(frozen=True, slots=True)
class Trail:
    """The last things one launch said."""

    last: str = ""  # the last word that took it further
    further_at: float = 0.0  # and when that was
    understood_at: float = 0.0  # when it last said anything that we know the meaning of, a mere sign of life included
    spoke: bool = False  # it has said anything at all
    spoke_before: bool = False  # an earlier launch of its session has: this kind of agent speaks
    result_at: float | None = None  # it said that it is done, and nothing since
    failed: bool = False  # with an error
    empty: bool = False  # and that came to nothing: no turn, nothing spent
    subagents: tuple[Open, ...] = ()  # that run
    again: str = ""  # the tool it used last, or a compaction
    times: int = 0  # so often in a row
    floor: float = 0.0  # silence is counted from here at the earliest: before, nobody listened
    reminded_at: float = 0.0  # a person was reminded of its questions last: whatever it says meanwhile
    reminders: int = 0  # so often of the oldest that is open


SAID_NOTHING = Trail()


@dataclass(frozen=True, slots=True)
class Stalls:
    """How often a launch was found in one kind of stall."""

    verdict: str
    count: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted so far."""

    words: int = 0  # signs of life left out
    tools: int = 0
    failed_tools: int = 0
    longest_silence_s: float = 0.0  # in which a turn was open
    peak_bytes: int | None = None  # of all its processes together; None: nobody measured
    stalls: tuple[Stalls, ...] = ()


NOTHING_COUNTED = Tally()
