"""Transcripts: whether an agent's file of a conversation is there, and holds a word of it. A reading (P7).

It reads only what the agent owns, from the beginning, up to the first word."""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from vigil.core.model.conversation import Kept
from vigil.core.model.speech import Said, What
from vigil.observe.lines import ReadOutcome, read_lines, resolve
from vigil.observe.walk import fixed_folder
from vigil.text import decode

LOOK_BYTES = 2 << 20  # newer agents write whole requests: the first word may stand behind a few hundred kilobytes
LOOK_LINES = 5000
MOST_FILES = 50
SAYS_NOTHING = frozenset({What.STARTED, What.ENDED, What.ALIVE, What.SPEAKS, What.TICKS, What.UNKNOWN})


def read_transcript(pattern: str, conversation: str, read: Callable[[dict[str, Any]], Iterable[Said]]) -> tuple[Kept, str]:
    """Return what there is of a conversation, and its file, or why not; `read` says what an entry means."""
    found, words = Kept.MISSING, f"there is no transcript {pattern}"
    roots = resolve([fixed_folder(pattern)])
    for path in islice(glob.iglob(pattern), MOST_FILES):
        taken = read_lines(path, None, roots, LOOK_BYTES, LOOK_LINES)
        if taken.outcome is ReadOutcome.GONE:
            continue
        if taken.outcome is not ReadOutcome.READ:
            found, words = Kept.UNKNOWN, f"{path} cannot be read: {taken.why}"
        elif taken.more or _speaks(taken.lines, conversation, read):
            return Kept.THERE, path
        elif found is Kept.MISSING:
            found, words = Kept.EMPTY, f"{path} holds no word of a conversation"
    return found, words


def _speaks(lines: list[bytes], conversation: str, read: Callable[[dict[str, Any]], Iterable[Said]]) -> bool:
    spoke = False
    for line in lines:
        try:
            entry = json.loads(decode(line))
        except (ValueError, RecursionError):
            continue
        for said in read(entry) if isinstance(entry, dict) else ():
            if said.conversation not in ("", conversation):
                return False
            spoke = spoke or said.what not in SAYS_NOTHING
    return spoke
