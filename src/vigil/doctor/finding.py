"""A finding: what one check has to say, what to do about it, and how to mend it if that is safe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is: only a problem makes the doctor's exit code 1."""

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
    mend: Callable[[], str] | None = None  # makes it good and returns what it did

    def __post_init__(self) -> None:
        assert bool(self.todo) == (self.level in (Level.WARNING, Level.PROBLEM)), self


def ok(says: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, says)


def note(says: str, mend: Callable[[], str] | None = None) -> Finding:
    """Worth knowing; nothing has to be done."""
    return Finding(Level.NOTE, says, mend=mend)


def warning(says: str, todo: str, mend: Callable[[], str] | None = None) -> Finding:
    """Something works less well than it could, or soon will not."""
    return Finding(Level.WARNING, says, todo, mend)


def problem(says: str, todo: str, mend: Callable[[], str] | None = None) -> Finding:
    """Something does not work."""
    return Finding(Level.PROBLEM, says, todo, mend)
