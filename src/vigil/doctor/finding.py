"""A finding: what one check says, what to do about it, and how to mend it if that is safe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is; only a problem makes the doctor's exit code 1."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One line; a warning or a problem also says what to do."""

    level: Level
    says: str
    todo: str = ""
    mend: Callable[[], str] | None = None  # mends it, and returns what it did

    def __post_init__(self) -> None:
        assert bool(self.todo) == (self.level in (Level.WARNING, Level.PROBLEM)), self


def ok(says: str) -> Finding:
    """Return that all is well."""
    return Finding(Level.OK, says)


def note(says: str, mend: Callable[[], str] | None = None) -> Finding:
    """Return what is worth knowing and needs no action."""
    return Finding(Level.NOTE, says, mend=mend)


def warning(says: str, todo: str, mend: Callable[[], str] | None = None) -> Finding:
    """Return that something works less well than it could, or soon will not."""
    return Finding(Level.WARNING, says, todo, mend)


def problem(says: str, todo: str, mend: Callable[[], str] | None = None) -> Finding:
    """Return that something does not work."""
    return Finding(Level.PROBLEM, says, todo, mend)
