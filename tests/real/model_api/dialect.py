"""The contract of dialects: what a request asks of a model, and how a turn of the model is said in a vendor's own words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

INPUT_TOKENS = 120
MODEL = "scripted"


@dataclass(frozen=True)
class Tool:
    """A tool that a client offers, with the JSON schema of what it takes."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Ask:
    """What a request asks for."""

    streams: bool
    tools: tuple[Tool, ...]
    model: str = MODEL


@dataclass(frozen=True)
class Turn:
    """What the model says: words, or a call of one tool."""

    text: str = ""
    tool: str = ""
    arguments: Json = field(default_factory=dict)

    @property
    def pieces(self) -> list[str]:
        """The words as they are streamed, one after the other."""
        return re.findall(r"\S+\s*", self.text)

    @property
    def arguments_text(self) -> str:
        """What the tool is called with, as most vendors have it: as text."""
        return json.dumps(self.arguments)

    @property
    def output_tokens(self) -> int:
        """What it costs: a token a word, and eight for a call."""
        return len(self.pieces) or 8


@dataclass(frozen=True)
class Dialect:
    """One vendor's words."""

    name: str
    path: re.Pattern[str]  # of the requests that ask for a turn, below the scenario's prefix
    read: Callable[[str, Json], Ask]  # the path, and what was sent
    whole: Callable[[Ask, Turn], Json]  # a turn that is not streamed
    stream: Callable[[Ask, Turn], list[str]]  # the same as server-sent events, in order
    refuse: Callable[[int, str], Json]  # an answer that is none: its status, and why


def sent(data: Json, event: str = "") -> str:
    """Return one server-sent event."""
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(data)}\n\n"
