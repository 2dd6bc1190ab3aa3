"""Tails: the last output of an agent, as plain text without its secrets.

A cut may split a secret, and redaction does not recognise half of one: so we redact more than we keep, and drop what
stands right after a cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vigil.kernel.theirs import read_end
from vigil.text import decode, plain

KEPT_BYTES = 48 << 10
MARGIN = 4 << 10  # longer than any key
WINDOW_BYTES = {"screen": 256 << 10}  # most of a screen's bytes are colours
DEFAULT_WINDOW_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Tail:
    """The last lines of a file, its whole size, and when it was written."""

    text: str
    size_bytes: int
    at: float
    cut: bool


def read_tail(path: Path, redact: Callable[[str], str]) -> Tail:
    """Return the end of a file; OSError if it is unreadable."""
    end = read_end(path, WINDOW_BYTES.get(path.name, DEFAULT_WINDOW_BYTES))
    text = plain_lines(decode(end.data)).rstrip()
    doubtful_chars = len(plain_lines(decode(end.data[:MARGIN]))) if end.size_bytes > len(end.data) else 0
    if len(text) > KEPT_BYTES + MARGIN:
        text = text[-KEPT_BYTES - MARGIN :]
        doubtful_chars = MARGIN
    text = redact(text)
    kept = last_bytes(text[min(doubtful_chars, len(text) // 2) :], KEPT_BYTES)  # a short text keeps its second half
    return Tail(kept, end.size_bytes, end.at, end.size_bytes > len(end.data) or kept != text)


def plain_lines(text: str) -> str:
    """Return text without control sequences; an unterminated one costs only its own line."""
    if text.isascii() and "\x1b" not in text:
        return plain(text)
    return "\n".join(map(plain, text.split("\n")))


def last_bytes(text: str, most_bytes: int) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= most_bytes:
        return text
    return data[len(data) - most_bytes :].decode("utf-8", "ignore")
