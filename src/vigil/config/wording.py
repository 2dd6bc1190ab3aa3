"""Wording: places and values of a configuration file, each shown in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from vigil.text import one_line
from vigil.words import few

BARE = re.compile(r"[A-Za-z0-9_-]{1,80}")
SHOWN_CHARACTERS = 80
SHOWN_NAMES = 20
LARGEST = 1 << 63  # TOML's own limit; Python refuses to print much longer ones


def place(parts: tuple[int | str, ...]) -> str:
    """Return the words for a place: `ladder[0].steps[1].route`."""
    words = (f"[{part}]" if isinstance(part, int) else f".{key(part)}" for part in parts)
    return "".join(words).removeprefix(".")


def key(name: str) -> str:
    """Return a key as the file has it: in quotes if it needs them."""
    return name if BARE.fullmatch(name) else shown(name)


def shown(value: object) -> str:
    """Return a value as the file has it, or its kind."""
    if isinstance(value, str):
        cut = value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}..."
        return one_line(json.dumps(cut, ensure_ascii=False))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if -LARGEST <= value < LARGEST else "a number of more than 64 bits"
    if isinstance(value, float):
        return str(value)
    if isinstance(value, dict):
        return "a table"
    return "an array" if isinstance(value, list) else "a date or time"


def listed(names: Collection[str]) -> str:
    """Return names in a row, and how many it leaves out."""
    return few([key(name) for name in names], SHOWN_NAMES)
