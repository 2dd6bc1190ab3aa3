"""Tally: what is counted of one launch for the summary at its end: words, tools, silence, memory, stalls.

Pure. It begins anew with each launch and is durable with its session.
"""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.changing import replace
from vigil.core.recent import UNSAID
from vigil.core.said import Said, What

VERDICTS = 20  # kinds of stalls that are told apart


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


NOTHING = Tally()


def heard(tally: Tally, said: Said, is_new: bool) -> Tally:
    """Count a word; one that another source told before is not new."""
    if said.what in UNSAID or not is_new:
        return tally
    ended = said.what is What.TOOL_ENDED
    return replace(
        tally,
        words=tally.words + 1,
        tools=tally.tools + (said.what is What.TOOL_STARTED),
        failed_tools=tally.failed_tools + (ended and said.failed),
    )


def silent(tally: Tally, from_at: float | None, until: float) -> Tally:
    """Take in a silence that is over; `from_at` is None where nobody knows when it began."""
    lasted_s = 0.0 if from_at is None else until - from_at
    return replace(tally, longest_silence_s=lasted_s) if lasted_s > tally.longest_silence_s else tally


def stalled(tally: Tally, verdict: str) -> Tally:
    """Count a stall."""
    known = {one.verdict: one.count for one in tally.stalls}
    if verdict not in known and len(known) >= VERDICTS:
        return tally
    known[verdict] = known.get(verdict, 0) + 1
    return replace(tally, stalls=tuple(Stalls(name, count) for name, count in known.items()))


def measured(tally: Tally, memory_bytes: int) -> Tally:
    """Take in how much memory its processes have."""
    return replace(tally, peak_bytes=max(memory_bytes, tally.peak_bytes or 0))
