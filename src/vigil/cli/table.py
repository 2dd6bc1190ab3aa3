"""A table that fits the terminal. Written by hand: 500 rows take Rich half a second."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vigil.text import one_line

GAP = 2
LEAST = 8  # a shrinking column keeps at least this much
LEAST_FIRST = 16

COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "grey": 90}


class Drawn(str):
    """A cell whose spaces matter; its maker has made the text plain."""


@dataclass(frozen=True)
class Column:
    """A column; one that shrinks gives way on a narrow terminal, those with a turn leave it, in that order."""

    title: str
    shrink: bool = False
    colour: Callable[[str], str | None] | None = None
    leaves: int = 0  # its turn to leave; 0 stays
    least: int = LEAST  # a narrower one has shrunk too far, and others leave first
    whole: bool = False  # never cut, also where its line is too long for the terminal


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], wide: bool = False) -> None:
    """Print rows under their titles, cut to the terminal's width unless wide."""
    print("\n".join(format_table(columns, rows, terminal_width(wide), use_colour())))


def terminal_width(wide: bool = False) -> int | None:
    """Return how wide a line may be; None means no limit."""
    return None if wide or not (sys.stdout.isatty() or "COLUMNS" in os.environ) else shutil.get_terminal_size().columns


def format_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, coloured: bool) -> list[str]:
    """Return a table as lines no wider than `width`."""
    cells = [[cell if isinstance(cell, Drawn) else one_line(cell) for cell in row] for row in rows]
    widths = [max([len(column.title), *(text_width(row[i]) for row in cells)]) for i, column in enumerate(columns)]
    kept = [i for i in range(len(columns)) if widths[i]] if width is None else stay(columns, widths, width)
    columns, widths = [columns[i] for i in kept], [widths[i] for i in kept]
    cells = [[row[i] for i in kept] for row in cells]
    if width is not None:
        first = widths[0]
        widths = fit(widths, [column.shrink for column in columns], width)
        widths[0] = first if columns[0].whole else widths[0]
    lines = [_line([cut(column.title, w).ljust(w) for column, w in zip(columns, widths, strict=False)])]
    for row in cells:
        parts = []
        for column, cell, w in zip(columns, row, widths, strict=False):
            text = cut(cell, w)
            padded = text + " " * (w - text_width(text))
            colour = column.colour(cell) if coloured and column.colour else None
            parts.append(f"\x1b[{COLOURS[colour]}m{padded}\x1b[0m" if colour else padded)
        lines.append(_line(parts))
    return lines


def _line(parts: list[str]) -> str:
    return (" " * GAP).join(parts).rstrip()


def stay(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """Return which columns stay: empty ones leave, and while there is too little room, the next whose turn it is."""
    kept = [i for i in range(len(columns)) if widths[i]]
    least = [min(w, column.least) if column.shrink else w for column, w in zip(columns, widths, strict=True)]
    while _total([least[i] for i in kept]) > width and (leaving := [i for i in kept if columns[i].leaves]):
        kept.remove(min(leaving, key=lambda i: columns[i].leaves))
    return kept


def fit(widths: list[int], shrinks: list[bool], width: int) -> list[int]:
    """Return widths that fit: shrinking columns give way, then the last ones vanish; the first may be cut."""
    for count in range(len(widths), 0, -1):
        fitted = _squeezed(widths[:count], shrinks[:count], width)
        if _total(fitted) <= width:
            return fitted
    return [max(1, min(width, widths[0]))]


def _squeezed(widths: list[int], shrinks: list[bool], width: int) -> list[int]:
    """Shrink the columns that can, the widest first; the first names the row, and keeps more."""
    widths = list(widths)
    least = [LEAST_FIRST, *[LEAST] * (len(widths) - 1)]
    while (over := _total(widths) - width) > 0:
        able = [i for i, shrink in enumerate(shrinks) if shrink and widths[i] > least[i]]
        if not able:
            break
        widest = max(able, key=lambda i: widths[i])
        widths[widest] -= max(1, min(over, widths[widest] - least[widest], over // len(able)))
    return widths


def _total(widths: list[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def cut(text: str, width: int) -> str:
    """Return text no wider than `width`, with a mark where it was cut."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) > width - 1:
        text = text[:-1]
    return text + "…"


def text_width(text: str) -> int:
    """Return how many cells a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(char) or unicodedata.category(char) == "Cf"
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


def use_colour() -> bool:
    """Say whether to colour: on a terminal, unless the user said no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
