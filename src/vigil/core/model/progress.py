"""Progress: what an agent has open, its last words, and the tally of its launch."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.speech import What


@dataclass(frozen=True, slots=True)
class Recent:
    """One remembered word of an agent's progress: never a prompt, tool input or answer."""

    at: float
    what: What
    name: str = ""  # of a tool, a model, a kind of sub-agent
    text: str = ""
    id: str = ""
    source: str = ""  # hook, stream, transcript or screen
    failed: bool = False
    subagent: str = ""
    times: int = 1  # in a row, from `at` on


@dataclass(frozen=True, slots=True)
class Open:
    """What an agent has open: a tool that runs, or a question that waits."""

    id: str
    name: str
    since: float
    until: float | None = None  # it waits until then at most
    request: str = ""  # a question's second id, by which it is taken back


@dataclass(frozen=True, slots=True)
class Doing:
    """An agent's progress: the turn, tools and questions it has open."""

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
    """The trail of a launch's progress: the last things its agent said."""

    last: str = ""  # the last word that took it further
    further_at: float = 0.0  # and when that was
    understood_at: float = 0.0  # its last word that Vigil understood, signs of life included
    spoke: bool = False  # it has said anything at all
    spoke_before: bool = False  # an earlier launch of its session spoke
    result_at: float | None = None  # it said that it is done, and nothing since
    failed: bool = False  # with an error
    empty: bool = False  # and that came to nothing: no turn, nothing spent
    subagents: tuple[Open, ...] = ()  # that run
    again: str = ""  # the tool it used last, or a compaction
    times: int = 0  # so often in a row
    floor: float = 0.0  # silence counts from here at the earliest: before, Vigil did not listen
    reminded_at: float = 0.0  # the last reminder of its questions, whatever it said since
    reminders: int = 0  # reminders of the oldest open question


SAID_NOTHING = Trail()


@dataclass(frozen=True, slots=True)
class Stalls:
    verdict: str
    count: int


@dataclass(frozen=True, slots=True)
class Tally:
    words: int = 0  # signs of life left out
    tools: int = 0
    failed_tools: int = 0
    longest_silence_s: float = 0.0  # in which a turn was open
    peak_bytes: int | None = None  # of all its processes together; None: not measured
    stalls: tuple[Stalls, ...] = ()


NOTHING_COUNTED = Tally()
