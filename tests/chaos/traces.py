"""Traces: what agents wrote of themselves, joined with what was seen; a life too short to be seen is in them alone."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

from tests.chaos import proc
from tests.chaos.history import Life, Part


def join(lives: list[Life], traces: Path, sampled: list[float]) -> list[Life]:
    """Return all lives, with the last words of those who had time for them."""
    found = {(life.pid, life.start, life.launch): life for life in lives}
    joined = list(lives)
    for line in traces.read_text().splitlines():
        words = line.split()
        if words[0] == "start":
            _, session, launch, pid, start, _, *_ = words
            key = (int(pid), int(start), launch)
            if key not in found:
                began = proc.moment_of(int(start))
                found[key] = Life(Part.AGENT, int(pid), int(start), began, launch, session, began, _next(sampled, began))
                joined.append(found[key])
        elif words[0] == "end":
            _, launch, pid, start, up, end = words
            life = found.get((int(pid), int(start), launch))
            if life is not None and end != "-":
                life.said = end.replace(":", " ")
                if life.seen_to == life.began_at:  # never seen: it knows best
                    life.ended_at = max(life.began_at, proc.BOOTED_AT + float(up))
    return joined


def _next(sampled: list[float], moment: float) -> float:
    """Return when somebody who was not seen cannot have been there any more: by the second look it was an agent."""
    at = bisect_left(sampled, moment) + 1
    return sampled[at] if at < len(sampled) else moment
