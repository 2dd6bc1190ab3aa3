"""Shapes: reading JSON that others wrote, without ever raising.

A missing value, or one of another type, reads as empty. What we keep is bounded, one line,
and fit for any store and any terminal."""

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
MOST = 2**53  # above this, JSON's numbers are not exact integers
MILLISECONDS = 1e11  # as seconds this would be the year 5138, as milliseconds it is 1973
LATEST = 253402300800.0  # the year 10000
NAMES = ("hook_event_name", "type", "event", "kind")  # where an event's name may stand; the first text counts
OURS = frozenset({"heartbeat", "too-large"})  # our own hook says these; too-large stands for a payload over the size limit
ACTIVITIES = frozenset(Activity)
# An agent or its wrapper may state its activity plainly; these two say only that it lives.
LIFE_ONLY = frozenset({Activity.STARTING, Activity.UNKNOWN})


def text(event: Mapping[str, Any], key: str) -> str:
    """Return a text whole: to compare or search, never to keep."""
    value = event.get(key)
    return value if isinstance(value, str) else ""


def word(event: Mapping[str, Any], key: str) -> str:
    """Return a name or an id fit to keep: one line, bounded. Equal texts stay equal."""
    value = event.get(key)
    if not isinstance(value, str):
        return ""
    return value if len(value) <= WORD_CHARS and value.isprintable() else words(value, WORD_CHARS)


def words(said: str, most: int = WORDS_CHARS) -> str:
    """Return a few words for people: one line, bounded, without control characters."""
    line = one_line(said[: 4 * most])  # reads no further: texts reach megabytes
    is_whole = len(line) <= most and len(said) <= 4 * most
    return line if is_whole else line[: most - 1] + "…"  # so ends what was cut, a secret perhaps


def number(event: Mapping[str, Any], key: str) -> float | None:
    """Return a finite number; a boolean is not one."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -MOST <= value <= MOST else None  # NaN fails this comparison too


def count(event: Mapping[str, Any], key: str) -> int:
    """Return a whole number of at least 0; 0 if there is none."""
    return max(0, int(number(event, key) or 0))


def flag(event: Mapping[str, Any], key: str) -> bool:
    """Say whether the value is exactly true."""
    return event.get(key) is True


def table(event: Mapping[str, Any], key: str) -> Json:
    """Return an object; an empty one if there is none."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def rows(event: Mapping[str, Any], key: str) -> list[Json]:
    """Return the objects of a list, without its other items."""
    value = event.get(key)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def texts(event: Mapping[str, Any], key: str) -> list[str]:
    """Return the texts of a list, without its other items."""
    value = event.get(key)
    return [said for said in value if isinstance(said, str)] if isinstance(value, list) else []


def moment(event: Mapping[str, Any], key: str) -> float | None:
    """Return a moment in seconds since 1970, from RFC 3339 with an offset, or from seconds or milliseconds."""
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
        return _sane(parsed.timestamp()) if parsed.tzinfo else None  # without an offset the moment is unknown
    except (ValueError, OverflowError):
        return None


def _sane(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and 0 < seconds < LATEST else None


def later(delay_ms: float | None, at: float | None) -> float | None:
    """Return the moment this long after `at`; without `at`, after now."""
    return None if delay_ms is None else _sane((time.time() if at is None else at) + delay_ms / 1000)


def event_name(payload: Mapping[str, Any]) -> str:
    """Return the name of a hook's event, from any of its places; empty if there is none."""
    return next((name for key in NAMES if (name := word(payload, key))), "")


def declared(payload: Mapping[str, Any]) -> Said | None:
    """Return the activity or the heartbeat that any sender may state plainly; None if it states neither."""
    activity = text(payload, "activity")
    if activity in ACTIVITIES:
        what = What.ALIVE if activity in LIFE_ONLY else What.DOES
        return Said(what, name=activity, until=moment(payload, "until"), subagent=word(payload, "agent_id"))
    name = event_name(payload)
    return Said(What.ALIVE, name=name) if name in OURS else None
