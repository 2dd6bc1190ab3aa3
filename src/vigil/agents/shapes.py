"""Shapes: reading JSON that somebody else wrote, without ever raising.

What is missing, or is of another type than asked for, reads as empty. What is kept of it is bounded, one line, and something
that any store and any terminal takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vigil.core.model.speech import Activity, Said, What
from vigil.text import one_line

Json = dict[str, Any]
WORDS_CHARS = 200
WORD_CHARS = 200
MOST = 2**53  # beyond it JSON's numbers are no whole numbers any more
MILLISECONDS = 1e11  # as seconds this would be the year 5138, as milliseconds it is 1973
LATEST = 253402300800.0  # the year 10000
NAMES = ("hook_event_name", "type", "event", "kind")  # where an event's name may stand; the first that is text counts
OURS = frozenset({"heartbeat", "too-large"})  # what our own hook says: the second instead of what nobody could take
ACTIVITIES = frozenset(Activity)
# An agent or its wrapper may say plainly what it is doing; these two say only that it lives.
LIFE_ONLY = frozenset({Activity.STARTING, Activity.UNKNOWN})


def text(event: Mapping[str, Any], key: str) -> str:
    """Return a text as it is, of any length: to be compared or searched, never kept."""
    value = event.get(key)
    return value if isinstance(value, str) else ""


def word(event: Mapping[str, Any], key: str) -> str:
    """Return a name or an id that can be kept: one line, bounded. Equal texts stay equal."""
    value = event.get(key)
    if not isinstance(value, str):
        return ""
    return value if len(value) <= WORD_CHARS and value.isprintable() else words(value, WORD_CHARS)


def words(said: str, most: int = WORDS_CHARS) -> str:
    """Return a few words for people: one line, bounded, without anything a terminal would obey."""
    line = one_line(said[: 4 * most])  # no more is looked at: texts reach megabytes
    return line if len(line) <= most else line[: most - 1] + "…"


def number(event: Mapping[str, Any], key: str) -> float | None:
    """Return a finite number; a truth value is none."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -MOST <= value <= MOST else None  # also false for what is not a number


def count(event: Mapping[str, Any], key: str) -> int:
    """Return a whole number that is not negative; 0 if there is none."""
    return max(0, int(number(event, key) or 0))


def flag(event: Mapping[str, Any], key: str) -> bool:
    """Return whether it says true, and not merely something."""
    return event.get(key) is True


def table(event: Mapping[str, Any], key: str) -> Json:
    """Return an object; an empty one if there is none."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def rows(event: Mapping[str, Any], key: str) -> list[Json]:
    """Return the objects of a list; what is none of them is passed over."""
    value = event.get(key)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def texts(event: Mapping[str, Any], key: str) -> list[str]:
    """Return the texts of a list; what is none of them is passed over."""
    value = event.get(key)
    return [said for said in value if isinstance(said, str)] if isinstance(value, list) else []


def moment(event: Mapping[str, Any], key: str) -> float | None:
    """Return a moment in seconds since 1970: of RFC 3339 (with its offset), or of seconds or milliseconds since then."""
    value = event.get(key)
    if isinstance(value, str):
        return _parsed(value)
    since = number(event, key)
    if since is None or since <= 0:
        return None
    return _sane(since if since < MILLISECONDS else since / 1000)


def _parsed(said: str) -> float | None:
    try:
        parsed = datetime.fromisoformat(said)
        return _sane(parsed.timestamp()) if parsed.tzinfo else None  # without an offset it is no moment
    except (ValueError, OverflowError):
        return None


def _sane(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and 0 < seconds < LATEST else None


def later(delay_ms: float | None, at: float | None) -> float | None:
    """Return the moment that comes so much later than it was said; what has no time of its own is said now."""
    return None if delay_ms is None else _sane((time.time() if at is None else at) + delay_ms / 1000)


def event_name(payload: Mapping[str, Any]) -> str:
    """Return the name of a hook's event, wherever it stands; empty if it has none."""
    return next((name for key in NAMES if (name := word(payload, key))), "")


def declared(payload: Mapping[str, Any]) -> Said | None:
    """Return what a payload says plainly, whoever sent it: an activity, or a heartbeat; None if it says neither."""
    activity = text(payload, "activity")
    if activity in ACTIVITIES:
        what = What.ALIVE if activity in LIFE_ONLY else What.DOES
        return Said(what, name=activity, until=moment(payload, "until"), subagent=word(payload, "agent_id"))
    name = event_name(payload)
    return Said(What.ALIVE, name=name) if name in OURS else None
