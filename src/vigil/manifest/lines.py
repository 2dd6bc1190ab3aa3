"""Lines: where the keys of a TOML document stand, which its parser does not tell.

The parser took the text before, so it is valid. If this scan finds other keys than the parser, it reports no line at all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

Place = tuple[int | str, ...]

DEEPEST = 50  # far below anything we read; each place is kept whole, so memory grows with the square of the depth
BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
# A multi-line string may end in one or two quotes of its own; a date may hold a space.
PLAIN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[^\s,\[\]{}#][^,\[\]{}\n#]*",
    re.DOTALL,
)


def lines_of(text: str, document: dict[str, Any]) -> dict[Place, int]:
    """Return the line of every key and element of a document; empty if the scan is not sure."""
    scan = _Scan(text.replace("\r\n", "\n"))
    try:
        scan.document()
        places = set(_places((), document))
    except (_Lost, tomllib.TOMLDecodeError, RecursionError):
        return {}
    return scan.lines if scan.lines.keys() == places else {}


def line_at(lines: dict[Place, int], where: Place) -> int | None:
    """Return the line of a place; for a missing key, the line of its table."""
    return next((lines[where[:end]] for end in range(len(where), 0, -1) if where[:end] in lines), None)


def _places(where: Place, value: object) -> Iterator[Place]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, entry in entries:
        yield (*where, part)
        yield from _places((*where, part), entry)


class _Lost(Exception):
    """The text is not what the scan expects."""


class _Scan:
    """One pass over a text that notes the line of each key."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Place, int] = {}
        self._text = text
        self._at = 0
        self._line = 1
        self._counts: dict[Place, int] = {}  # how many tables each `[[array]]` has so far

    def document(self) -> None:
        table: Place = ()
        self._take(BLANK)
        while self._at < len(self._text):
            if self._ahead("["):
                table = self._header()
            else:
                self._pair(table)
            self._take(BLANK)

    def _header(self) -> Place:
        """Read `[a.b]` or `[[a.b]]` and return the table that the next keys belong to."""
        line = self._line
        self._expect("[")
        many = self._ahead("[")
        if many:
            self._expect("[")
        *parents, last = self._keys()
        self._expect("]]" if many else "]")
        where: Place = ()
        for part in parents:
            where = self._newest(self._note((*where, part), line))
        where = self._note((*where, last), line)
        if many:
            self._counts[where] = self._counts.get(where, 0) + 1
        where = self._newest(where)
        return self._note(where, line)

    def _newest(self, where: Place) -> Place:
        return (*where, self._counts[where] - 1) if where in self._counts else where

    def _note(self, where: Place, line: int) -> Place:
        if len(where) > DEEPEST:
            raise _Lost
        self.lines.setdefault(where, line)
        return where

    def _pair(self, table: Place) -> None:
        line = self._line
        where = table
        for part in self._keys():
            where = self._note((*where, part), line)
        self._expect("=")
        self._take(SPACE)
        self._value(where)

    def _keys(self) -> list[str]:
        """Read a key and those that dots join to it."""
        keys = [self._key()]
        while self._ahead("."):
            self._expect(".")
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        self._take(SPACE)
        word = self._take(KEY)
        self._take(SPACE)
        return str(tomllib.loads(f"k = {word}")["k"]) if word[0] in "\"'" else word

    def _value(self, where: Place) -> None:
        if self._ahead("["):
            self._array(where)
        elif self._ahead("{"):
            self._inline_table(where)
        else:
            self._take(PLAIN)

    def _array(self, where: Place) -> None:
        self._expect("[")
        self._take(BLANK)
        number = 0
        while not self._ahead("]"):
            self._value(self._note((*where, number), self._line))
            self._between("]")
            number += 1
        self._expect("]")

    def _inline_table(self, where: Place) -> None:
        self._expect("{")
        self._take(BLANK)
        while not self._ahead("}"):
            self._pair(where)
            self._between("}")
        self._expect("}")

    def _between(self, end: str) -> None:
        self._take(BLANK)
        if not self._ahead(end):
            self._expect(",")
            self._take(BLANK)

    def _ahead(self, mark: str) -> bool:
        return self._text.startswith(mark, self._at)

    def _expect(self, mark: str) -> None:
        if not self._ahead(mark):
            raise _Lost
        self._at += len(mark)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _Lost
        self._at = found.end()
        self._line += found[0].count("\n")
        return found[0]
