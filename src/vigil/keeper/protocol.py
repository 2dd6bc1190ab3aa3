"""What daemon and keeper say to each other: one JSON object a line over a unix socket.

Requests carry `id` and `do`; answers carry `re` and `ok`; what the keeper says unasked carries `ev`. Standard library only.
"""

from __future__ import annotations

import json
from typing import Any

VERSION = 3  # a keeper of a lower version is asked to exec itself anew
LINE_BYTES = 1 << 20

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """Return a message as it goes over the wire."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that are complete now; a line that is none, or without end, raises ValueError."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            raise ValueError("a line without end")
        try:
            messages = [json.loads(line) for line in lines if line]
        except RecursionError:
            raise ValueError("nested without end") from None
        if not all(isinstance(message, dict) for message in messages):
            raise ValueError("not an object")
        return messages
