"""The copy-editor: a machine with a twin whose every sentence reads otherwise; the two must decide the same.

After each event the twin's words (`why`, `reason`, `text` and their like) are written anew, and so are those of the next event
before the twin hears of it. What differs then, words aside, was decided by a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from vigil.core.book import Book
from vigil.core.effects import Effect
from vigil.core.events import Event
from vigil.core.machine import Machine
from vigil.core.model.incident import Incident
from vigil.core.model.reading import Reading
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.team import Role

MARK = "·"
# Fields that are written for people.
WORDS = frozenset({"why", "reason", "text", "resolution", "unended", "unreadable", "pressure", "kept", "note", "activity"})
LINES = frozenset({"reasons", "evidence", "ruled_out", "without"})  # several sentences each
LOGGED = WORDS | LINES | {"words", "what", "intent"}  # what an entry of the log says in words


class Reworded(str):
    """A sentence that reads otherwise, and is still the same one to who asks only whether it has changed."""

    __slots__ = ("was",)
    was: str

    def __eq__(self, other: object) -> bool:
        return self.was == (other.was if isinstance(other, Reworded) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.was)


def reword(text: str) -> str:
    """Return a sentence with none of its words left in place."""
    return text if not text or text.startswith(MARK) else MARK + text[::-1]


def edited(value: Any) -> Any:
    """Return a value of the core with all its sentences written anew, and all else as it was."""
    if isinstance(value, tuple):
        found = tuple(map(edited, value))
        return value if all(new is old for new, old in zip(found, value, strict=True)) else found
    if isinstance(value, Mapping):
        return {key: edited(one) for key, one in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, Any] = {}
    for name in _names(type(value)):
        old = getattr(value, name)
        new = _edited_field(value, name, old)
        if new is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value


def _edited_field(value: Any, name: str, old: Any) -> Any:
    if name in WORDS and isinstance(old, str) and not isinstance(old, Enum):
        return _same_but_reworded(old) if isinstance(value, Incident | Reading) else reword(old)
    if name in LINES and isinstance(old, tuple) and all(type(line) is str for line in old):
        return tuple(map(reword, old))
    return edited(old)


def _same_but_reworded(text: str) -> str:
    """Of an incident and a reading the machine asks whether the words are new, to show them; nothing else."""
    if not text or isinstance(text, Reworded):
        return text
    found = Reworded(reword(text))
    found.was = text
    return found


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def wordless(value: Any) -> Any:
    """Return what a value says apart from its sentences; of those only whether there is one."""
    if isinstance(value, tuple | list):
        return [wordless(one) for one in value]
    if isinstance(value, Mapping):
        return {
            key: bool(one) if key in LOGGED and isinstance(one, str | list) else wordless(one) for key, one in value.items()
        }
    if not is_dataclass(value) or isinstance(value, type):
        return value
    found: dict[str, Any] = {"": type(value).__name__}
    for name in _names(type(value)):
        one = getattr(value, name)
        plain = name in WORDS and isinstance(one, str) and not isinstance(one, Enum)
        lines = name in LINES and isinstance(one, tuple) and all(isinstance(line, str) for line in one)
        found[name] = bool(one) if plain else len(one) if lines else wordless(one)
    return found


class TwinMachine(Machine):
    """The machine as it is, with its twin; what it returns is its own, so that the world takes its course."""

    def __init__(
        self, sessions: Iterable[Session] = (), open_incidents: Iterable[Incident] = (), roles: Iterable[Role] = ()
    ) -> None:
        sessions, open_incidents, roles = tuple(sessions), tuple(open_incidents), tuple(roles)
        super().__init__(sessions, open_incidents, roles)
        self._twin = Machine(edited(sessions), edited(open_incidents), edited(roles))

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event, and have the twin decide the same."""
        effects = super().handle(event, now)
        theirs = self._twin.handle(edited(event), now)
        mine, other = wordless(effects), wordless(theirs)
        assert mine == other, f"words decided what is done about {type(event).__name__}: {_first_difference(mine, other)}"
        shown, twins = wordless(self.changed), wordless(self._twin.changed)
        assert shown == twins, f"words decided what {type(event).__name__} changes: {_first_difference(shown, twins)}"
        _edit(self._twin._book)
        return effects


def _edit(book: Book) -> None:
    """Write anew what the last event wrote."""
    for session_id, session in book.change.shown.items():
        if session is not None:
            book.sessions[session_id] = edited(session)
    for incident in book.change.incidents.values():
        for known in (book.incidents, book.resolved):
            for key, one in known.items():
                if one is incident:
                    known[key] = edited(one)
    for key in book.change.roles:
        if key in book.roles:
            book.roles[key] = edited(book.roles[key])
    book.memory = reword(book.memory)


def _first_difference(mine: Any, other: Any, path: str = "") -> str:
    """Say where two values differ first."""
    if isinstance(mine, dict) and isinstance(other, dict) and mine.keys() == other.keys():
        keys: Iterable[Any] = mine
    elif isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        keys = range(len(mine))
    else:
        return f"{path}: {mine!r:.300} and {other!r:.300}"
    return next((_first_difference(mine[key], other[key], f"{path}.{key}") for key in keys if mine[key] != other[key]), path)
