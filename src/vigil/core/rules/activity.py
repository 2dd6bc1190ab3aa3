"""Activity: what an agent does, by a row for each kind of word, and the trail and last words it leaves (DESIGN 4.1)."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.model.progress import IDLE, Doing, Open, Recent, Trail
from vigil.core.model.reading import Axis, Fact
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.speech import Activity, Said, What

OPEN_KEPT = 50  # open tools or questions; the oldest go beyond that
ARMED = frozenset({"Monitor", "ScheduleWakeup"})  # their result says that the wait begins
PLAINLY = "plainly"  # the id of what a plain statement opened
PLAIN: dict[str, Doing] = {
    Activity.WORKING: Doing(started=True, turn=True),
    Activity.THINKING: Doing(started=True, turn=True, thinks=True),
    Activity.TOOL: Doing(started=True, turn=True),
    Activity.WAITING_HUMAN: Doing(started=True, turn=True),
    Activity.WAITING_TIMER: Doing(started=True, waits=True),
    Activity.THROTTLED: Doing(started=True, turn=True, retries=True),
    Activity.IDLE: IDLE,
}
OF_SUBAGENTS = frozenset({What.ASKED, What.ANSWERED, What.TOOL_ENDED})  # these words of a sub-agent count for its parent
ALIVE_ONLY = frozenset({What.ALIVE, What.SPEAKS, What.TICKS, What.UNKNOWN, What.ERROR})  # signs of life and no more
NEW_WORK = frozenset({What.PROMPT, What.STARTED, What.ANSWERED})  # these end a run in circles
COMPACTION = "compaction"
KEPT = 20
KEPT_OF_DEATH = 10
TEXT_CHARS = 120
NAME_CHARS = 60
SAME_S = 2.0  # two sources tell the same word within this
UNSAID = frozenset({What.ALIVE, What.SPEAKS, What.TICKS})  # they come every few letters or seconds and say nothing


def _ends(_doing: Doing, _said: Said, _at: float) -> Doing:
    """Return the activity after an ended turn: nothing is open, not even a question."""
    return IDLE


def _tool_ends(doing: Doing, said: Said, _at: float) -> Doing:
    after = replace(_goes_on(doing), tools=_without(doing.tools, said.id), asked=_without(doing.asked, said.id))
    waits = next((one.until for one in doing.tools if one.id == said.id and one.name in ARMED), None)
    return after if waits is None or said.failed else replace(after, waits=True, until=waits)


def _retries(doing: Doing, said: Said, _at: float) -> Doing:
    return replace(doing, started=True, retries=True, until=said.until)


def _is_held(doing: Doing, said: Said, at: float) -> Doing:
    return replace(_retries(doing, said, at), held=said.what.value)


def _does(doing: Doing, said: Said, at: float) -> Doing:
    """Return the activity that an agent states plainly; under a limit its request stays open."""
    said_so = tuple(one for one in (*doing.tools, *doing.asked) if (one.id, one.name) == (PLAINLY, said.name))
    opened = said_so or (Open(PLAINLY, said.name, at),)
    tools, asked = (opened if said.name == one else () for one in (Activity.TOOL, Activity.WAITING_HUMAN))
    if said.name == Activity.THROTTLED:
        asked = tuple(one for one in doing.asked if one.id != PLAINLY)
    return replace(PLAIN.get(said.name, doing), tools=tools, asked=asked, until=said.until)


def _signs(doing: Doing, _said: Said, _at: float) -> Doing:
    """Return an unchanged activity: a sign of life does not say what an agent does."""
    return doing


def _speaks(doing: Doing, _said: Said, _at: float) -> Doing:
    """Return the activity once the model answers again; an account's limit stays."""
    return replace(doing, retries=False, until=None) if doing.retries and not doing.held else doing


def _goes_on(doing: Doing) -> Doing:
    """Return the activity of an agent that works again: it neither waits nor retries."""
    return replace(doing, started=True, thinks=False, waits=False, retries=False, held="", until=None)


RULES: dict[What, Callable[[Doing, Said, float], Doing]] = {
    What.STARTED: _ends,
    # A question that stood there was answered: a person can type no prompt before.
    What.PROMPT: lambda doing, _said, _at: replace(_goes_on(doing), turn=True, asked=()),
    What.TURN_STARTED: lambda doing, _said, _at: replace(_goes_on(doing), turn=True),
    What.THINKS: lambda doing, _said, _at: replace(_goes_on(doing), turn=True, thinks=True),
    What.TURN_ENDED: _ends,
    What.TOOL_STARTED: lambda doing, said, at: replace(_goes_on(doing), turn=True, tools=_with(doing.tools, said, at)),
    What.TOOL_ENDED: _tool_ends,
    What.WAITS: lambda doing, said, _at: replace(_goes_on(doing), waits=True, until=said.until),
    What.ASKED: lambda doing, said, at: replace(_goes_on(doing), asked=_with(doing.asked, said, at)),
    What.ANSWERED: lambda doing, said, _at: replace(_goes_on(doing), asked=_without(doing.asked, said.id)),
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


def take_in(doing: Doing, said: Said, at: float) -> Doing:
    """Decide by the row for this word what an agent does after it."""
    if said.subagent and said.what not in OF_SUBAGENTS:
        return _signs(doing, said, at)
    return RULES[said.what](doing, said, at)


HELD = {What.LIMIT.value: "its account is at its limit", What.AUTH.value: "nobody lets it in: it needs a login"}


def activity_of(doing: Doing) -> tuple[Activity, str]:
    """Return an agent's activity to show, with words: questions first, then waits, then tools."""
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
    """Drop from an agent's activity what a word ended; without an id, the newest."""
    if not ended:
        return found[:-1]
    return tuple(one for one in found if ended not in (one.id, one.request))


def extend_trail(trail: Trail, said: Said, at: float) -> Trail:
    trail = replace(trail, spoke=True)
    if said.what not in (What.UNKNOWN, What.TICKS):
        trail = replace(trail, understood_at=max(at, trail.understood_at))
    if said.what is What.SUBAGENT_STARTED:
        others = [one for one in trail.subagents if one.id != said.id]
        trail = replace(trail, subagents=(*others, Open(said.id, said.name, at))[-OPEN_KEPT:])
    elif said.what is What.SUBAGENT_ENDED:
        trail = replace(trail, subagents=tuple(one for one in trail.subagents if one.id != said.id))
    if said.subagent or said.what in ALIVE_ONLY:  # a sub-agent does not say what its parent does
        return trail
    if said.what is What.RESULT:
        trail = replace(_count_repeats(trail, said), last=said.what, further_at=at)
        return replace(trail, result_at=at, failed=said.failed, empty=_is_empty(said))
    late = said.what in (What.TURN_ENDED, What.ENDED, What.SUBAGENT_ENDED)  # another source tells the end again
    result_at = trail.result_at if late else None
    return replace(_count_repeats(trail, said), last=said.what, further_at=at, result_at=result_at)


def _is_empty(said: Said) -> bool:
    """Say whether an agent's activity ended in an empty result; without its cost, no."""
    usage = said.usage
    if usage is None or said.failed or said.conversation:
        return False
    return not (usage.input_tokens or usage.output_tokens or usage.cost_usd)


def _count_repeats(trail: Trail, said: Said) -> Trail:
    """Count in an agent's trail the same tool, or compaction, in a row."""
    if said.what in NEW_WORK:
        return replace(trail, again="", times=0)
    name = COMPACTION if said.what is What.COMPACTED else said.name if said.what is What.TOOL_STARTED else ""
    if not name:
        return trail
    return replace(trail, again=name, times=trail.times + 1 if name == trail.again else 1)


def remember(ring: tuple[Recent, ...], said: Said, at: float, source: str) -> tuple[Recent, ...]:
    """Return an agent's last words that stay known, with one more; the oldest goes."""
    if said.what in UNSAID:
        return ring
    name, text = (said.name or _name_of(ring, said))[:NAME_CHARS], said.text[:TEXT_CHARS]
    new = Recent(at, said.what, name, text, said.id, source, said.failed, said.subagent)
    if any(_is_same(new, known) for known in reversed(ring)):
        return ring
    last = ring[-1] if ring else None
    if last is not None and not new.id and replace(new, at=last.at, times=last.times) == last:
        return (*ring[:-1], replace(last, times=last.times + 1))
    return (*ring, new)[-KEPT:]


def _name_of(ring: tuple[Recent, ...], said: Said) -> str:
    """Return from an agent's last words the name of what a word ends by id."""
    return next((known.name for known in reversed(ring) if said.id and known.id == said.id), "")


def _is_same(new: Recent, known: Recent) -> bool:
    """Say whether a known word of an agent is this one, told by another source."""
    if (new.what, new.subagent) != (known.what, known.subagent) or new.source == known.source:
        return bool(new.id) and (new.what, new.id, new.source) == (known.what, known.id, known.source)
    if new.id and known.id:
        return new.id == known.id
    return abs(new.at - known.at) <= SAME_S


def note_work(session: Session, evidence: str, at: float) -> Session:
    """Return a session that notes when its agent's activity last showed work, by evidence."""
    if at <= session.worked.get(evidence, 0.0):
        return session
    return replace(session, worked={**session.worked, evidence: at})


def activity_facts(session: Session, doing: Doing, source: str, at: float | None) -> tuple[Fact, ...]:
    """Return the new reading of the activity axis, if it changed."""
    if at is None:
        return ()
    reading = session.vitals.axes.get(Axis.ACTIVITY)
    value, why = activity_of(doing)
    if reading is not None and (reading.value, reading.why) == (value, why):
        return ()
    return (Fact(Axis.ACTIVITY, value, source, at, why=why),)
