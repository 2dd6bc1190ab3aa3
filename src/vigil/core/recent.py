"""Recent: the last words of an agent, for whoever asks what it did before it fell silent or died (DESIGN 5).

Pure. A ring in its session, durable with it, so that it outlives a daemon. A word that two sources tell is there once.
"""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.changing import replace
from vigil.core.said import Said, What

KEPT = 20
KEPT_OF_DEATH = 10
TEXT_CHARS = 120
NAME_CHARS = 60
SAME_S = 2.0  # two sources tell the same word within this
UNSAID = frozenset({What.ALIVE, What.SPEAKS, What.TICKS})  # there is one for every few letters or seconds, and it says nothing


@dataclass(frozen=True, slots=True)
class Recent:
    """One word as it is remembered: never a prompt, a tool's input or an answer."""

    at: float
    what: What
    name: str = ""  # of a tool, a model, a kind of sub-agent
    text: str = ""
    id: str = ""
    source: str = ""  # hook, stream, transcript or screen
    failed: bool = False
    subagent: str = ""
    times: int = 1  # so often in a row, this being the first


def remember(ring: tuple[Recent, ...], said: Said, at: float, source: str) -> tuple[Recent, ...]:
    """Return the ring with a word more; the oldest goes."""
    if said.what in UNSAID:
        return ring
    name, text = (said.name or _name_of(ring, said))[:NAME_CHARS], said.text[:TEXT_CHARS]
    new = Recent(at, said.what, name, text, said.id, source, said.failed, said.subagent)
    if any(_is_same(new, known) for known in reversed(ring)):
        return ring
    last = ring[-1] if ring else None
    if last is not None and not new.id and replace(new, at=last.at, times=last.times) == last:
        return (*ring[:-1], replace(last, times=last.times + 1))
    return (*ring, new)[-KEPT:]


def _name_of(ring: tuple[Recent, ...], said: Said) -> str:
    """Return what was named when it began; what ends it has only its id."""
    return next((known.name for known in reversed(ring) if said.id and known.id == said.id), "")


def _is_same(new: Recent, known: Recent) -> bool:
    """Say whether another source told this already; with an id it is the same whenever it comes."""
    if (new.what, new.subagent) != (known.what, known.subagent) or new.source == known.source:
        return bool(new.id) and (new.what, new.id, new.source) == (known.what, known.id, known.source)
    if new.id and known.id:
        return new.id == known.id
    return abs(new.at - known.at) <= SAME_S
