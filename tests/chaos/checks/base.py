"""What every check gives back, and what excuses lateness."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tests.chaos.history import History, Life, Part, Span, unexcused_s

DAEMON_START_S = 2.5  # from its process's beginning until it has taken over what lives
KEEPER_START_S = 1.5
AROUND_S = 3.0
HEARD_S = 1.0
LONGEST_START_S = 10.0  # whoever has not answered by then is not starting any more


@dataclass(frozen=True)
class Violation:
    at: float
    text: str


@dataclass
class Verdict:
    """How often a promise was looked at, and where it broke."""

    promise: str
    checked: int = 0
    violations: list[Violation] = field(default_factory=list)

    def expect(self, holds: bool, at: float, text: str) -> None:
        self.checked += 1
        if not holds:
            self.violations.append(Violation(at, text))


@lru_cache(maxsize=16)
def gaps(history: History, part: Part, start_s: float) -> list[Span]:
    """Return when no process of a part was there and ready."""
    found, at = [], history.began_at
    for life in sorted(history.parts(part), key=lambda one: one.began_at):
        answered_at = life.ready_at or life.began_at + (LONGEST_START_S if part is Part.DAEMON else 0.0)
        ready_at = min(max(answered_at, life.began_at + start_s), life.began_at + LONGEST_START_S)
        if ready_at > at:
            found.append(Span(at, min(ready_at, life.ended_at or ready_at), f"no {part}"))
        at = max(at, life.ended_at or history.judged_at)
    if at < history.judged_at:
        found.append(Span(at, history.judged_at, f"no {part}"))
    return found


def excuses(history: History, launch: str = "") -> list[Span]:
    """Return what excuses lateness: of everybody, and of one launch."""
    spans = [span for span in history.spans if span.subject in ("", launch)]
    return [
        *spans,
        *gaps(history, Part.DAEMON, DAEMON_START_S),
        *gaps(history, Part.KEEPER, KEEPER_START_S),
    ]


@lru_cache(maxsize=16)
def down(history: History, part: Part) -> list[Span]:
    """Return when a part was dead, starting or stopped."""
    start_s = DAEMON_START_S if part is Part.DAEMON else KEEPER_START_S
    return [*gaps(history, part, start_s), *(span for span in history.spans if span.what == f"{part} stopped")]


def touches(spans: list[Span], since: float, until: float) -> bool:
    return any(span.since <= until and span.until >= since for span in spans)


def nobody_saw(history: History, life: Life) -> bool:
    """Say whether nobody could see how a process ended: both were away, or whoever was there had not heard of it yet."""
    if life.ended_at is None:
        return False
    around = max(life.began_at, life.ended_at - AROUND_S), life.ended_at + AROUND_S
    if all(touches(down(history, part), *around) for part in (Part.DAEMON, Part.KEEPER)):
        return True
    known_to = [keeper.ended_at or history.judged_at for keeper in history.parts(Part.KEEPER) if keeper.lives_at(life.began_at)]
    orphaned_at = max(known_to, default=life.began_at)  # from then on a daemon has to tell the next keeper
    away = [*down(history, Part.DAEMON), *(span for span in history.spans if span.what.startswith("store"))]
    return orphaned_at < life.ended_at and unexcused_s(orphaned_at, life.ended_at, away) < HEARD_S


@lru_cache(maxsize=2)
def by_launch(history: History) -> dict[str, Life]:
    """Return the agent of each launch; of two the first."""
    found: dict[str, Life] = {}
    for life in sorted(history.agents(), key=lambda one: one.began_at):
        found.setdefault(life.launch, life)
    return found
