"""Text for people: what agents print, without control sequences."""

from __future__ import annotations

import re

# CSI, OSC and the other string sequences (ended by BEL or ST, or unended), two-byte escapes, and their 8-bit forms.
SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# Surrogate halves too: JSON may hold one, UTF-8 and the store cannot.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Return text without control characters, except newline and tab."""
    if "\x1b" in text or not text.isascii():
        text = SEQUENCE.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Return text for a table's cell: plain, in one line."""
    return re.sub(r"\s+", " ", plain(text)).strip()


def decode(data: bytes) -> str:
    """Return an agent's bytes as text; a mark replaces what is not UTF-8."""
    return data.decode("utf-8", "replace")
