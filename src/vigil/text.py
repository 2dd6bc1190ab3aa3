"""Text for people: what agents print, without control sequences."""

from __future__ import annotations

import re
import unicodedata

# CSI, OSC and the other string sequences (ended by BEL or ST, or unended), two-byte escapes, and their 8-bit forms.
SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# Surrogate halves too: JSON may hold one, UTF-8 and the store cannot.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# What Unicode calls default-ignorable, and the marks of annotations: it takes no room, so it hides words from a reader, turns
# their order (bidi), or smuggles in others (tags, variation selectors). Soft hyphens too: they split what is searched for.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Three have an honest use: joiners inside scripts that need them and inside emoji, a selector behind what it selects for.
JOINER = re.compile("[\u200c\u200d\ufe0e\ufe0f]+")
JOINED = frozenset({"Lo", "Mn", "Mc", "So", "Sk"})
SELECTED = frozenset({"So", "Sm", "Po", "Nd", "Sk"})


def plain(text: str) -> str:
    """Return text without control characters, except newline and tab."""
    if "\x1b" in text or not text.isascii():
        text = SEQUENCE.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = CONTROL.sub("", text)
    if text.isascii():
        return text
    text = INVISIBLE.sub("", text)
    return JOINER.sub(_joined, text) if JOINER.search(text) else text


def _joined(match: re.Match[str]) -> str:
    """Keep a selector behind a sign, and a joiner between two letters or signs that one may join."""
    text, (start, end) = match.string, match.span()
    before = unicodedata.category(text[start - 1]) if start else ""
    after = unicodedata.category(text[end]) if end < len(text) else ""
    selector = match[0][0] if match[0][0] in "\ufe0e\ufe0f" and before in SELECTED else ""
    joiner = match[0][-1] if match[0][-1] in "\u200c\u200d" and before in JOINED and after in JOINED else ""
    return selector + joiner


def one_line(text: str) -> str:
    """Return text for a table's cell: plain, in one line."""
    return re.sub(r"\s+", " ", plain(text)).strip()


def decode(data: bytes) -> str:
    """Return an agent's bytes as text; a mark replaces what is not UTF-8."""
    return data.decode("utf-8", "replace")
