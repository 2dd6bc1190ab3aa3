"""How `vigil replay` shows one event: a line for each difference, then and now, the telling ones first."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from vigil.cli.table import cut
from vigil.recording import Difference, ReplayStep
from vigil.text import one_line

LINES = 8
VALUE_CHARS = 60
MOMENTS = re.compile(r"(^|[._])(at|since|until)$")
OLDEST = 1e9  # seconds: a recording has no earlier moment
# The word for a thing that only one side has. Other things are effects, which the core asks for.
THERE = {
    "session": "changed",
    "launch": "changed",
    "incident": "changed",
    "death": "recorded",
    "intent": "recorded",
    "removal": "done",
    "log": "logged",
}
GIST = ("cause", "state", "kind", "verb")  # the first of these that a thing has stands for it


def lines_of(step: ReplayStep, names: dict[str, str], wide: bool) -> list[str]:
    """Return what differs at one event; wide shows all of it, uncut."""
    if step.problem is not None:
        return [one_line(step.problem)]
    if wide:
        return [line_of(difference, names, None) for difference in step.differences]
    telling = [difference for difference in step.differences if not difference.is_echo] or step.differences
    lines = [line_of(difference, names, VALUE_CHARS) for difference in telling[:LINES]]
    left = len(telling) - len(lines)
    return [*lines, f"and {left} more: -o wide shows all"] if left else lines


def line_of(difference: Difference, names: dict[str, str], width: int | None) -> str:
    """Return one difference: what it is of, then → now."""
    what = " ".join(names.get(word, word) for word in (difference.of, *difference.id.split()))
    if difference.field:
        sides = [value_of(difference.field, side) for side in (difference.then, difference.now)]
        what = f"{what} {difference.field}"
    elif difference.of in ("answer", "order"):
        sides = [value_of("", side) for side in (difference.then, difference.now)]
    else:
        sides = [there(difference.of, side) for side in (difference.then, difference.now)]
    then, now = map(one_line, sides)
    if width is not None:
        then, now = (cut(side, width) for side in without_common_start(then, now, width))
    return f"{one_line(what)}: {then} → {now}"


def without_common_start(then: str, now: str, width: int) -> tuple[str, str]:
    """Return two texts, cut at the front so that their difference stays in view."""
    same = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    if same < width // 2 or max(len(then), len(now)) <= width:
        return then, now
    kept = same - width // 4
    return f"…{then[kept:]}", f"…{now[kept:]}"


def there(of: str, thing: Any) -> str:
    """Return whether an answer held a thing, with its gist."""
    word = THERE.get(of, "asked for")
    if thing is None:
        return f"not {word}"
    gist = next((str(thing[key]) for key in GIST if thing.get(key)), "") if isinstance(thing, dict) and of in THERE else ""
    return f"{word} ({gist})" if gist else word


def value_of(field: str, value: Any) -> str:
    """Return a value for people."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return moment(value) if MOMENTS.search(field) and value > OLDEST else f"{value:g}" if value < 1e6 else str(value)
    if isinstance(value, dict):
        return " ".join(f"{key}={value_of(key, one)}" for key, one in value.items()) or "nothing"
    if isinstance(value, list):
        return ", ".join(value_of("", one) for one in value) or "nothing"
    return str(value) or "nothing"


def moment(at: float) -> str:
    """Return a time of day in UTC; the event's line has its date."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3] + "Z"
    except (ValueError, OverflowError, OSError):
        return str(at)
