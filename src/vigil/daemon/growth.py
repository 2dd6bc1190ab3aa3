"""Growth: when the files an agent writes of itself last grew, its own and those of its sub-agents.

Read when somebody asks, by what the file system says: also of an agent whose words come another way, and of one that writes
lines nobody understands.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

MOST = 200  # files of one pattern


@dataclass(frozen=True, slots=True)
class Grown:
    """One file: whose it is, when it was written to last by the wall's clock, and how large it is."""

    path: str
    subagent: bool
    at: float
    size_bytes: int


def read_growth(patterns: Sequence[str]) -> list[Grown]:
    """Read the files that patterns name: the conversation's own, then its sub-agents', the newest first."""
    own = _read(patterns[:1], subagent=False)
    others = sorted(_read(patterns[1:], subagent=True), key=lambda grown: -grown.at)
    return [*own, *others]


def _read(patterns: Iterable[str], subagent: bool) -> list[Grown]:
    found = []
    for pattern in patterns:
        for path in islice(glob.iglob(pattern), MOST):
            try:
                stat = os.stat(path)
            except OSError:
                continue
            found.append(Grown(path, subagent, stat.st_mtime, stat.st_size))
    return found
