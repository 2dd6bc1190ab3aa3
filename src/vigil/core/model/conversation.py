"""Conversations: what is left of one, how a session wakes in it, waiting prompts, cost (DESIGN 4.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.launch import Mode


class Kept(StrEnum):
    """What is left of a conversation."""

    THERE = "there"
    EMPTY = "empty"  # its transcript holds no word of it
    MISSING = "missing"
    UNABLE = "unable"  # this agent, or this command, cannot go on with one
    UNKNOWN = "unknown"  # it could not be found out


@dataclass(frozen=True, slots=True)
class Wake:
    mode: Mode
    cause: str
    why: str = ""  # in words, where it is refused or nothing could be resumed
    until: float | None = None  # of a refusal


@dataclass(frozen=True, slots=True)
class Transcript:
    """What one reading found left of a conversation."""

    conversation: str
    kept: Kept
    at: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A prompt that waits to be typed into a conversation; a file has its text."""

    id: str
    at: float
    actor: str
    characters: int
    launch_id: str = ""  # it is being typed into this launch
    typed_at: float | None = None  # since then


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session's conversations have cost so far, as far as its agent says."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input
    cost_usd: float = 0.0
    turns: int = 0


NOTHING_SPENT = Spent()
