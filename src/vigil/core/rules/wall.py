"""Walls: what a word about a limit or a failed login means, and until when it stands (DESIGN 4.4)."""

from __future__ import annotations

from vigil.core.model.death import Cause, Wall
from vigil.core.model.replace import replace
from vigil.core.rules.restart import LIMIT_S, WALLS

LONGEST_S = 7 * 86400.0  # the longest limits are weekly: a later end was misread
LIMIT_CAP_S = 6 * 3600.0  # a limit without an end is tried ever more rarely, up to this
PASSED_S = 60.0  # first retry of a limit whose end has passed
SLACK_S = 3600.0  # clocks differ, also by a change to summer time
REASONS = frozenset(WALLS.values())


def read_wall(before: Wall | None, launch_id: str, cause: Cause, text: str, until: float | None, at: float) -> Wall:
    """Return the wall that a word tells of; repeated words only make it more precise."""
    if before is not None and before.cause is cause and before.launch_id == launch_id and stands(before, at):
        return replace(before, text=text or before.text, at=max(at, before.at), until=_nearer(before, until, at))
    tries = 1 if before is None or before.cause is not cause else before.tries + 1
    found, note = bounded(cause, until, at, tries)
    return Wall(cause, text, at, launch_id, found, tries, note)


def _nearer(before: Wall, until: float | None, at: float) -> float | None:
    """Return until when a wall stands after another word; a named moment knows better."""
    if until is None or before.until is None:
        return before.until
    found, note = bounded(before.cause, until, at, before.tries)
    return before.until if note else found


def bounded(cause: Cause, until: float | None, at: float, tries: int) -> tuple[float | None, str]:
    """Return when to try a wall again, and what is wrong with its stated end."""
    if cause is Cause.AUTH:
        return None, ""
    steps = min(tries - 1, 16)
    if until is None:
        return at + min(LIMIT_S * 2**steps, LIMIT_CAP_S), "it does not say until when"
    if until > at + LONGEST_S + SLACK_S:
        return at + min(LIMIT_S * 2**steps, LIMIT_CAP_S), "what it says of its end is too far away"
    if until <= at:
        return at + min(PASSED_S * 2**steps, LIMIT_S), "what it says of its end has passed"
    return until, ""


def stands(wall: Wall, now: float) -> bool:
    """Say whether a wall still stands, by its own end."""
    return not wall.over and (wall.until is None or now < wall.until)
