"""Vitals: what is known of a launch while it lasts; the next launch begins with new ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypedDict

from vigil.core.model.conversation import NOTHING_SPENT, Spent
from vigil.core.model.death import Intent
from vigil.core.model.heartbeat import Pulse
from vigil.core.model.progress import NOTHING_COUNTED, SAID_NOTHING, UNHEARD, Doing, Recent, Tally, Trail
from vigil.core.model.reading import Axis, Doubt, Reading
from vigil.core.model.stall import Stall


@dataclass(frozen=True, slots=True)
class Vitals:
    """What the core knows of one launch of a session."""

    axes: Mapping[Axis, Reading] = field(default_factory=dict)
    attached: int = 0
    doubt: Doubt | None = None
    intent: Intent | None = None
    pulse: Pulse | None = None  # where its role promises signs of life
    doing: Doing = UNHEARD  # what is open of its agent's work
    trail: Trail = SAID_NOTHING  # and what it said last
    stall: Stall | None = None  # what was found when it fell silent
    prompted_by: str = ""  # the best source that told of prompts
    spent_before: Spent = NOTHING_SPENT  # by launches before this one
    read_to: Mapping[str, str] = field(default_factory=dict)  # files of its agent, and how far each was read
    recent: tuple[Recent, ...] = ()  # its last words
    tally: Tally = NOTHING_COUNTED


UNKNOWN_VITALS = Vitals()
VITALS = frozenset(one.name for one in fields(Vitals))


class VitalsChanges(TypedDict, total=False):
    """The fields of Vitals as keyword arguments; a test holds that they are the same."""

    axes: Mapping[Axis, Reading]
    attached: int
    doubt: Doubt | None
    intent: Intent | None
    pulse: Pulse | None
    doing: Doing
    trail: Trail
    stall: Stall | None
    prompted_by: str
    spent_before: Spent
    read_to: Mapping[str, str]
    recent: tuple[Recent, ...]
    tally: Tally
