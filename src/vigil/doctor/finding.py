"""A finding: what one check says, what to do about it, and how to mend it if that is safe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial


class Level(StrEnum):
    """How bad it is; only a problem makes the doctor's exit code 1."""

    OK = "ok"
    NOTE = "note"  # worth knowing, and needs no action
    WARNING = "warning"  # works less well than it could, or soon will not
    PROBLEM = "problem"  # does not work


@dataclass(frozen=True)
class Finding:
    """One line; a warning or a problem also says what to do."""

    level: Level
    says: str
    todo: str = ""
    mend: Callable[[], str] | None = None  # mends it, and returns what it did

    def __post_init__(self) -> None:
        assert bool(self.todo) == (self.level in (Level.WARNING, Level.PROBLEM)), self


ok = partial(Finding, Level.OK)
note = partial(Finding, Level.NOTE)
warning = partial(Finding, Level.WARNING)
problem = partial(Finding, Level.PROBLEM)
