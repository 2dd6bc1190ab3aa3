"""Fitting: what a bundle gives up, and in which order, to stay within its bound."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from vigil.forensics.tails import last_bytes
from vigil.text import plain

BUNDLE_BYTES = 256 << 10
STRING_CHARS = 1000
ENTRIES = 500
DEPTH = 8
LARGEST = 1 << 63


@dataclass
class Parts:
    """What a bundle consists of: its report, and its texts by their names in the report."""

    report: dict[str, Any]
    texts: dict[str, str]

    def size_bytes(self) -> int:
        return len(dump(self.report)) + sum(len(encode(text)) for text in self.texts.values())


class Cut(NamedTuple):
    """One row: what to shorten, and how many bytes or entries to keep; other values go whole."""

    what: str
    keep: int


CUTS = (  # In order, until the bundle fits. The reasons for a death go last; the death itself is never cut.
    Cut("stdout", 8 << 10),
    Cut("stderr", 16 << 10),
    Cut("samples", 6),
    Cut("agent_samples", 6),
    Cut("top", 5),
    Cut("events", 10),
    Cut("screen", 16 << 10),
    Cut("samples", 0),
    Cut("agent_samples", 0),
    Cut("top", 0),
    Cut("stdout", 0),
    Cut("armed", 0),
    Cut("changes", 0),
    Cut("disk", 0),
    Cut("tree", 0),
    Cut("events", 0),
    Cut("host", 0),
    Cut("cgroup", 0),
    Cut("survivors", 50),
    Cut("survivors", 0),
    Cut("kernel", 0),
    Cut("core", 0),
    Cut("memory", 0),
    Cut("open_tool", 0),
    Cut("exits", 0),
)
FROM_THE_FRONT = frozenset({"top", "survivors"})  # their first entries count; in other lists the last are the newest


def fit(parts: Parts, most_bytes: int = BUNDLE_BYTES) -> None:
    """Shorten a bundle until it fits; its report says what was cut."""
    for cut in CUTS:
        if parts.size_bytes() <= most_bytes:
            return
        _shorten(parts, cut)


def _shorten(parts: Parts, cut: Cut) -> None:
    what, keep = cut
    if what in parts.texts:
        whole = parts.texts[what]
        parts.texts[what] = last_bytes(whole, keep)
        if parts.texts[what] != whole:
            parts.report["cut"].append(f"{what}.txt: its last {keep} bytes are kept")
        return
    value = parts.report.get(what)
    if isinstance(value, list):
        if len(value) > keep:
            parts.report[what] = value[:keep] if what in FROM_THE_FRONT else value[len(value) - keep :]
            parts.report["cut"].append(f"{what}: {keep} of {len(value)} are kept")
    elif value:
        parts.report[what] = None
        parts.report["cut"].append(f"{what}: it was too large")


def clean(value: Any, redact: Callable[[str], str], depth: int = DEPTH) -> Any:
    """Return a value fit for JSON: plain, without secrets, bounded in strings, lists and depth."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return redact(plain(value))[:STRING_CHARS]
    if depth == 0:
        return None
    if isinstance(value, dict):
        return {str(key)[:STRING_CHARS]: clean(entry, redact, depth - 1) for key, entry in list(value.items())[:ENTRIES]}
    if isinstance(value, list | tuple):
        return [clean(entry, redact, depth - 1) for entry in value[:ENTRIES]]
    return clean(str(value), redact, depth - 1)


def dump(report: dict[str, Any]) -> bytes:
    return json.dumps(report, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"


def encode(text: str) -> bytes:
    """Return a text as the bytes of its file, with a final newline."""
    return text.encode("utf-8", "replace") + b"\n" if text else b""
