"""Ends: why an agent ended, told from what we did and what it said itself; Vigil is not asked."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from enum import StrEnum

from tests.chaos.checks.base import down, excuses, touches
from tests.chaos.history import History, Life, Part, Shot, unexcused_s

DEADLY = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGINT})
ENDING = ("stop", "restart", "rm", "hibernate", "scale", "start", "wake", "reset")
GRACE_S = 60.0  # an intent outlives the command and the daemon that took it
HANGUP_S = 90.0  # an agent that ignores hangups is ended before its replacement
BIRTH_S = 12.0
YOUNG_S = 30.0  # a new daemon ends what it cannot place, soon


class Why(StrEnum):
    SAID = "it ended itself"
    SHOT = "we signalled it"
    PANE = "we closed its pane"
    SHIM = "we killed its shim"
    SERVER = "we killed its server"
    COMMAND = "we asked for it"
    MEMORY = "it ran out of memory"
    BIRTH = "daemon or keeper died at its birth"


def reasons(history: History, life: Life) -> set[Why]:
    """Return all that may have ended an agent; nothing if nobody of ours did."""
    return set(_reasons(history, life))


def _reasons(history: History, life: Life) -> Iterator[Why]:
    ended = life.ended_at or history.judged_at
    if life.said:
        yield Why.SAID
    for shot in history.shots:
        if shot.at <= ended + 0.1 and (why := _why_shot(history, shot, life, ended)):
            yield why
    for span in history.faults:
        if span.what == "out of memory" and span.subject == life.launch:
            yield Why.MEMORY
    for command in history.about(life.session, *ENDING):
        if command.began_at <= ended and _ran_s(history, command.ended_at, ended, life.launch) <= GRACE_S:
            yield Why.COMMAND
    for part in (Part.DAEMON, Part.KEEPER) if ended - life.began_at < YOUNG_S else ():
        if touches(down(history, part), life.began_at - BIRTH_S, life.began_at + 2.0):
            yield Why.BIRTH


def _ran_s(history: History, since: float, until: float, launch: str) -> float:
    """Return for how long Vigil could do what it had to."""
    return unexcused_s(since, until, excuses(history, launch))


def _why_shot(history: History, shot: Shot, life: Life, ended: float) -> Why | None:
    if (shot.pid, shot.start) == life.key:
        died_of = life.ending is None or life.ending[1] == shot.number
        return Why.SHOT if shot.number in DEADLY and died_of else None
    if shot.launch != life.launch or not life.launch or shot.number not in DEADLY:
        return None
    if _ran_s(history, shot.at, ended, life.launch) > HANGUP_S:
        return None
    return {Part.ROOT: Why.PANE, Part.RECORDER: Why.SHIM, Part.SERVER: Why.SERVER}.get(shot.part)
