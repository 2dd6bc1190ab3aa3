"""Conversations: what is left of one, how a session wakes in it, what waits to be typed, what it cost (DESIGN 4.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.launch import Mode


class Kept(StrEnum):
    """What there is of a conversation to go on with."""

    THERE = "there"
    EMPTY = "empty"  # its transcript holds no word of it
    MISSING = "missing"
    UNABLE = "unable"  # this agent, or this command, cannot go on with one
    UNKNOWN = "unknown"  # nobody could find out


@dataclass(frozen=True, slots=True)
class Wake:
    """What was decided on a session that is to be launched: how, and why so."""

    mode: Mode
    cause: str
    why: str = ""  # in words, where it is refused or nothing could be resumed
    until: float | None = None  # of a refusal


@dataclass(frozen=True, slots=True)
class Transcript:
    """One reading of what there is of a conversation."""

    conversation: str
    kept: Kept
    at: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A prompt that waits to be typed; its text lies in a file of its own, and goes with it."""

    id: str
    at: float
    actor: str
    characters: int
    launch_id: str = ""  # it is being typed into this launch
    typed_at: float | None = None  # since then


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has used so far, as far as its agent says."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input
    cost_usd: float = 0.0
    turns: int = 0


NOTHING_SPENT = Spent()
