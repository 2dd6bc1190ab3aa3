"""Wake: whether a session resumes its conversation, begins a new one, or is refused, by how it ended (DESIGN 4.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from vigil.core.model.conversation import Wake
from vigil.core.model.death import Cause
from vigil.core.model.launch import Mode
from vigil.core.model.restart import HoldReason

CRASHED, FIRST, ASKED, AWAKE = "crashed", "first", "asked", "already awake"
NEVER, PARKED, INTERRUPTED = "never ran", "parked", "interrupted"  # ends that are no cause of death
# The conversation was not to blame.
BLAMELESS = frozenset(
    {
        PARKED,
        Cause.FINISHED,
        Cause.OPERATOR,
        Cause.POLICY,
        Cause.LIMIT,
        Cause.AUTH,
        Cause.HOST_REBOOTED,
        Cause.SERVER_DIED,
        Cause.PANE_CLOSED,
        Cause.OOM,
        Cause.KILLED_BY_UNKNOWN,
        Cause.UNHEALTHY,
        Cause.STALLED,  # once: a second stall quarantines it
    }
)
BROKEN = frozenset({Cause.CRASH, Cause.EARLY_EXIT, Cause.UNOBSERVED})  # the conversation may have broken it
UNBORN = frozenset({Cause.LAUNCH_FAILED, INTERRUPTED})  # it said nothing: the last decision still holds
CRASH_LOOP = frozenset({HoldReason.BACKOFF, HoldReason.SATURATED})
WALLS = frozenset({HoldReason.LIMIT, HoldReason.AUTH})


class Life(StrEnum):
    AWAKE = "awake"  # it lives, or is on its way
    STOPPED = "stopped"  # a person stopped it, or is doing so
    ASLEEP = "asleep"


class Resumability(StrEnum):
    """Whether a session can wake in its conversation; if not, the word is the cause."""

    RESUMABLE = "resumable"
    NOTHING = "nothing-to-resume"
    QUARANTINED = "quarantined"
    IN_USE = "in-use"  # another session is in it


@dataclass(frozen=True, slots=True)
class WakeQuestion:
    asked: Mode | None  # None: the caller did not say
    by_wake: bool  # `vigil wake` and a message ask; `start` and policy just launch
    life: Life
    hold: HoldReason | None  # why it waits, if that is not over
    ended: str  # its last launch
    found: Resumability
    resumes_crashed: bool = False  # after_crash = resume
    last_mode: Mode = Mode.FRESH
    last_cause: str = ""  # why its last launch was made in that mode


class WakeRow(NamedTuple):
    holds: Callable[[WakeQuestion], bool]
    mode: Mode
    cause: Callable[[WakeQuestion], str]


def _always(word: str) -> Callable[[WakeQuestion], str]:
    return lambda _case: word


def _found(case: WakeQuestion) -> str:
    return case.found.value


def _resumable(case: WakeQuestion) -> bool:
    return case.found is Resumability.RESUMABLE


ROWS = (
    WakeRow(lambda c: c.life is Life.AWAKE, Mode.NOTHING, _always(AWAKE)),
    WakeRow(lambda c: c.by_wake and c.life is Life.STOPPED, Mode.REFUSED, _always("stopped")),
    WakeRow(lambda c: c.by_wake and c.hold in CRASH_LOOP, Mode.REFUSED, _always("crash-loop")),
    WakeRow(lambda c: c.by_wake and c.hold in WALLS, Mode.REFUSED, lambda c: c.hold or ""),
    WakeRow(lambda c: c.asked is Mode.FRESH, Mode.FRESH, _always(ASKED)),
    WakeRow(lambda c: c.asked is Mode.RESUME and _resumable(c), Mode.RESUME, _always(ASKED)),
    WakeRow(lambda c: c.asked is Mode.RESUME, Mode.REFUSED, _found),
    WakeRow(lambda c: c.ended == NEVER, Mode.FRESH, _always(FIRST)),
    WakeRow(lambda c: c.ended in BLAMELESS and _resumable(c), Mode.RESUME, lambda c: c.ended),
    WakeRow(lambda c: c.by_wake and c.ended in BLAMELESS and c.found is Resumability.IN_USE, Mode.REFUSED, _found),
    WakeRow(lambda c: c.ended in BLAMELESS, Mode.FRESH, _found),
    WakeRow(
        lambda c: c.ended in BROKEN and c.resumes_crashed and _resumable(c) and c.last_cause != CRASHED,
        Mode.RESUME,
        _always(CRASHED),
    ),
    WakeRow(lambda c: c.ended in BROKEN, Mode.FRESH, _always(CRASHED)),
    WakeRow(lambda c: c.last_mode is Mode.RESUME and _resumable(c), Mode.RESUME, lambda c: c.last_cause),
    WakeRow(lambda c: c.last_mode is Mode.RESUME, Mode.FRESH, _found),
    WakeRow(lambda _: True, Mode.FRESH, lambda c: c.last_cause or FIRST),
)


def decide(case: WakeQuestion) -> Wake:
    """Decide whether a session wakes in its conversation, in a new one or not."""
    row = next(row for row in ROWS if row.holds(case))
    return Wake(row.mode, str(row.cause(case)))
