"""Doing: what an agent is doing, from all it said so far: open turns, tools and questions (DESIGN 4.1).

Pure, and a table: each kind of word has one row. A sub-agent's words are signs of life; its questions are its parent's too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vigil.core.activity import Activity
from vigil.core.changing import replace
from vigil.core.said import Said, What

OPEN_KEPT = 50  # tools or questions that are open at once; more are counted as one


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


ARMED = frozenset({"Monitor", "ScheduleWakeup"})  # their result says that the wait begins

UNHEARD = Doing()
IDLE = Doing(started=True)

PLAINLY = "plainly"  # the id of what is open because it was said in so many words
PLAIN: dict[str, Doing] = {
    Activity.WORKING: Doing(started=True, turn=True),
    Activity.THINKING: Doing(started=True, turn=True, thinks=True),
    Activity.TOOL: Doing(started=True, turn=True),
    Activity.WAITING_HUMAN: Doing(started=True, turn=True),
    Activity.WAITING_TIMER: Doing(started=True, waits=True),
    Activity.THROTTLED: Doing(started=True, turn=True, retries=True),
    Activity.IDLE: IDLE,
}


def _started(_doing: Doing, _said: Said, _at: float) -> Doing:
    return IDLE


def _begins(doing: Doing, _said: Said, _at: float) -> Doing:
    return replace(_goes_on(doing), turn=True)


def _prompted(doing: Doing, _said: Said, _at: float) -> Doing:
    """Nobody can type a prompt while a question stands there: whatever was asked was answered."""
    return replace(_goes_on(doing), turn=True, asked=())


def _thinks(doing: Doing, _said: Said, _at: float) -> Doing:
    return replace(_goes_on(doing), turn=True, thinks=True)


def _ends(_doing: Doing, _said: Said, _at: float) -> Doing:
    """A turn that is over leaves nothing open: what it asked was answered, or nobody waits for the answer any more."""
    return IDLE


def _tool_begins(doing: Doing, said: Said, at: float) -> Doing:
    return replace(_goes_on(doing), turn=True, tools=_with(doing.tools, said, at))


def _tool_ends(doing: Doing, said: Said, _at: float) -> Doing:
    after = replace(_goes_on(doing), tools=_without(doing.tools, said.id), asked=_without(doing.asked, said.id))
    waits = next((one.until for one in doing.tools if one.id == said.id and one.name in ARMED), None)
    return after if waits is None or said.failed else replace(after, waits=True, until=waits)


def _asks(doing: Doing, said: Said, at: float) -> Doing:
    return replace(_goes_on(doing), asked=_with(doing.asked, said, at))


def _answered(doing: Doing, said: Said, _at: float) -> Doing:
    return replace(_goes_on(doing), asked=_without(doing.asked, said.id))


def _waits(doing: Doing, said: Said, _at: float) -> Doing:
    return replace(_goes_on(doing), waits=True, until=said.until)


def _retries(doing: Doing, said: Said, _at: float) -> Doing:
    return replace(doing, started=True, retries=True, until=said.until)


def _is_held(doing: Doing, said: Said, at: float) -> Doing:
    return replace(_retries(doing, said, at), held=said.what.value)


def _does(doing: Doing, said: Said, at: float) -> Doing:
    """What is said plainly is all there is: nothing else is open, but for a request, which no limit answers."""
    said_so = tuple(one for one in (*doing.tools, *doing.asked) if (one.id, one.name) == (PLAINLY, said.name))
    opened = said_so or (Open(PLAINLY, said.name, at),)
    tools, asked = (opened if said.name == one else () for one in (Activity.TOOL, Activity.WAITING_HUMAN))
    if said.name == Activity.THROTTLED:
        asked = tuple(one for one in doing.asked if one.id != PLAINLY)
    return replace(PLAIN.get(said.name, doing), tools=tools, asked=asked, until=said.until)


def _signs(doing: Doing, _said: Said, _at: float) -> Doing:
    """That it lives says nothing of what it does."""
    return doing


def _speaks(doing: Doing, _said: Said, _at: float) -> Doing:
    """The model answers: nothing is tried again; a limit that ends an account is not over by that."""
    return replace(doing, retries=False, until=None) if doing.retries and not doing.held else doing


def _goes_on(doing: Doing) -> Doing:
    """Whoever works again neither waits nor tries again."""
    return replace(doing, started=True, thinks=False, waits=False, retries=False, held="", until=None)


RULES: dict[What, Callable[[Doing, Said, float], Doing]] = {
    What.STARTED: _started,
    What.PROMPT: _prompted,
    What.TURN_STARTED: _begins,
    What.THINKS: _thinks,
    What.TURN_ENDED: _ends,
    What.TOOL_STARTED: _tool_begins,
    What.TOOL_ENDED: _tool_ends,
    What.WAITS: _waits,
    What.ASKED: _asks,
    What.ANSWERED: _answered,
    What.RETRIES: _retries,
    What.LIMIT: _is_held,
    What.AUTH: _is_held,
    What.ERROR: _signs,
    What.RESULT: _ends,
    What.COMPACTED: _signs,
    What.SUBAGENT_STARTED: _signs,
    What.SUBAGENT_ENDED: _signs,
    What.DOES: _does,
    What.ENDED: _ends,
    What.ALIVE: _signs,
    What.SPEAKS: _speaks,
    What.TICKS: _signs,
    What.UNKNOWN: _signs,
}
OF_SUBAGENTS = frozenset({What.ASKED, What.ANSWERED, What.TOOL_ENDED})  # these of a sub-agent's words count for its parent


def take_in(doing: Doing, said: Said, at: float) -> Doing:
    """Return what an agent is doing after it said this."""
    if said.subagent and said.what not in OF_SUBAGENTS:
        return _signs(doing, said, at)
    return RULES[said.what](doing, said, at)


HELD = {What.LIMIT.value: "its account is at its limit", What.AUTH.value: "nobody lets it in: it needs a login"}


def activity_of(doing: Doing) -> tuple[str, str]:
    """Return what to show: a question outranks what waits, which outranks what runs; and that in words."""
    if doing.asked:
        return Activity.WAITING_HUMAN, f"asked: {_names(doing.asked)}"
    if doing.held:
        return Activity.THROTTLED, HELD[doing.held]
    if doing.retries:
        return Activity.THROTTLED, "the model does not answer, and it tries again"
    if doing.waits:
        return Activity.WAITING_TIMER, "it waits for a moment it named"
    if doing.tools:
        return Activity.TOOL, _names(doing.tools)
    if doing.thinks:
        return Activity.THINKING, "the model was asked"
    if doing.turn:
        return Activity.WORKING, "a turn is open"
    return (Activity.IDLE, "no turn is open") if doing.started else (Activity.UNKNOWN, "this agent has reported nothing yet")


def _names(found: tuple[Open, ...]) -> str:
    return ", ".join(dict.fromkeys(one.name or one.id or "something" for one in found[-3:]))


def _with(found: tuple[Open, ...], said: Said, at: float) -> tuple[Open, ...]:
    if any(one.id == said.id for one in found if said.id):
        return found
    return (*found, Open(said.id, said.name, at, said.until, said.request))[-OPEN_KEPT:]


def _without(found: tuple[Open, ...], ended: str) -> tuple[Open, ...]:
    """Close what has this id; an end without one closes the newest."""
    if not ended:
        return found[:-1]
    return tuple(one for one in found if ended not in (one.id, one.request))
