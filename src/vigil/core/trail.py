"""Trail: what an agent said last, and whether that took it any further; what silence and circles are told by.

Pure, and sets: each kind of word either takes an agent further or only shows that it lives.
"""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.changing import replace
from vigil.core.doing import OPEN_KEPT, Open
from vigil.core.said import Said, What

ALIVE_ONLY = frozenset({What.ALIVE, What.SPEAKS, What.TICKS, What.UNKNOWN, What.ERROR})  # these show life and no more
FURTHER = frozenset(What) - ALIVE_ONLY
NEW_WORK = frozenset({What.PROMPT, What.STARTED, What.ANSWERED})  # whatever went in circles before is over
COMPACTION = "compaction"


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


def take_in(trail: Trail, said: Said, at: float) -> Trail:
    """Return the trail after a word."""
    trail = replace(trail, spoke=True)
    if said.what not in (What.UNKNOWN, What.TICKS):
        trail = replace(trail, understood_at=max(at, trail.understood_at))
    if said.what is What.SUBAGENT_STARTED:
        others = [one for one in trail.subagents if one.id != said.id]
        trail = replace(trail, subagents=(*others, Open(said.id, said.name, at))[-OPEN_KEPT:])
    elif said.what is What.SUBAGENT_ENDED:
        trail = replace(trail, subagents=tuple(one for one in trail.subagents if one.id != said.id))
    if said.subagent or said.what in ALIVE_ONLY:  # words of a sub-agent do not tell what its parent does
        return trail
    if said.what is What.RESULT:
        trail = replace(_count(trail, said), last=said.what, further_at=at)
        return replace(trail, result_at=at, failed=said.failed, empty=_is_empty(said))
    late = said.what in (What.TURN_ENDED, What.ENDED, What.SUBAGENT_ENDED)  # told once more by another source
    result_at = trail.result_at if late else None
    return replace(_count(trail, said), last=said.what, further_at=at, result_at=result_at)


def _is_empty(said: Said) -> bool:
    """Say whether a run came to nothing: without words of what it cost, nothing is known."""
    usage = said.usage
    if usage is None or said.failed or said.conversation:
        return False
    return not (usage.input_tokens or usage.output_tokens or usage.cost_usd)


def _count(trail: Trail, said: Said) -> Trail:
    """Count how often the same tool was used, or the conversation made smaller, with nothing else in between."""
    if said.what in NEW_WORK:
        return replace(trail, again="", times=0)
    name = COMPACTION if said.what is What.COMPACTED else said.name if said.what is What.TOOL_STARTED else ""
    if not name:
        return trail
    return replace(trail, again=name, times=trail.times + 1 if name == trail.again else 1)
