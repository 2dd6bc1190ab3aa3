"""The door: every event passes here on its way to the machine, and leaves the secrets of its session behind.

Behind it are the store, the event log, incidents, notices and recordings: what the machine never heard is in none of them.
Long words are cut first: redaction costs time by the letter, and nothing shows more of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from operator import is_
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from vigil.core import events
from vigil.core.machine import Machine
from vigil.core.model.conversation import Message, Transcript
from vigil.core.model.death import Words
from vigil.core.model.evidence import Child, Flag, Number, Text
from vigil.core.model.incident import Notice
from vigil.core.model.reading import Fact
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.sighting import Glimpse, Stray
from vigil.core.model.speech import Hook, Said
from vigil.daemon.base.secrets import Secrets
from vigil.redact import Redactor

T = TypeVar("T")
WORD_CHARS = 16 << 10
CUT_CHARS = 80  # where the spool cuts the name of a hook
# What an agent, its processes, its files or a caller may have put into words.
WORDS: dict[type, tuple[str, ...]] = {
    Said: ("name", "text", "subagent", "id", "request"),  # ids stay distinct unless they hold a secret
    Hook: ("name",),
    Words: ("text",),
    Fact: ("why",),
    Number: ("why",),
    Text: ("value", "why"),
    Flag: ("why",),
    Child: ("name", "command", "wchan"),
    Transcript: ("why", "conversation"),
    Message: ("actor",),
    Notice: ("why",),
    Glimpse: ("unreadable",),
    Stray: ("name",),
    events.Acked: ("actor",),
    events.Adopted: ("actor",),
    events.Applied: ("actor",),
    events.Asked: ("actor", "reason"),
    events.Attended: ("why",),
    events.Condition: ("why",),
    events.Declared: ("actor",),
    events.Ended: ("why",),
    events.Launched: ("without",),
    events.LaunchFailed: ("why",),
    events.MemoryRead: ("why",),
    events.MessageSent: ("why",),
    events.Noted: ("data",),
    events.ReactionEnded: ("why",),
    events.Recovered: ("why",),
    events.ShiftAborted: ("actor",),
    events.ShiftAsked: ("actor",),
    events.Sighted: ("actor",),
    events.Spared: ("why",),
    events.Stepped: ("why",),
    events.StrayEnded: ("why",),
}
CONVERSATION: dict[type, tuple[str, ...]] = {Said: ("conversation",)}  # an id with a secret in it is none
OWN = (Session,)  # made of what passed here before, and of commands: the store keeps the truth of those


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """What the door cleans in one class: its owner's id, its words, the values below."""

    whose: str  # launch_id, session_id or incident_id; empty: as the value above it
    words: tuple[str, ...]
    conversation: tuple[str, ...]
    below: tuple[str, ...]


NOTHING = FieldPlan("", (), (), ())


class Door:
    def __init__(self, machine: Machine, secrets: Secrets) -> None:
        self._machine = machine
        self._secrets = secrets

    def clean(self, event: T) -> T:
        """Let an event through the door: return it without secrets, itself if it held none."""
        clean: T = self._clean(event, self._secrets.everything)
        return clean

    def _clean(self, value: Any, redactor: Redactor) -> Any:
        kind: Any = type(value)
        plan = plan_of(kind)
        if plan is NOTHING:
            return value
        redactor = self._redactor_of(plan.whose, getattr(value, plan.whose)) if plan.whose else redactor
        changed = {}
        for name in plan.words:
            if (before := getattr(value, name)) and (after := hidden(before, redactor.text)) is not before:
                changed[name] = after
        for name in plan.conversation:
            if (before := getattr(value, name)) and redactor.text(before) != before:
                changed[name] = ""
        for name in plan.below:
            if (before := getattr(value, name)) and (after := self._below(before, redactor)) is not before:
                changed[name] = after
        if kind is Hook and len(value.name) >= CUT_CHARS:
            changed["name"] = redactor.uncut(changed.get("name", value.name))
        return replace(value, **changed) if changed else value

    def _below(self, value: Any, redactor: Redactor) -> Any:
        if not isinstance(value, tuple):
            return self._clean(value, redactor)
        clean = [self._clean(one, redactor) for one in value]
        return value if all(map(is_, clean, value)) else tuple(clean)

    def _redactor_of(self, whose: str, key: str | None) -> Redactor:
        session_id = key
        if whose == "launch_id":
            session = self._machine.of_launch(key or "")
            session_id = None if session is None else session.id
        elif whose == "incident_id":
            incident = self._machine.incidents.get(key or "")
            session_id = None if incident is None else incident.session_id
        return self._secrets.everything if session_id is None else self._secrets.redactor(session_id)


def hidden(value: Any, hide: Callable[[str], str]) -> Any:
    """Return words as they pass the door: cut, without secrets; the same value if unchanged."""
    if isinstance(value, str):
        cut = value if len(value) <= WORD_CHARS else f"{value[: WORD_CHARS - 1]}…"
        clean = hide(cut)
        return value if clean == value else clean
    if isinstance(value, tuple):
        parts = tuple(hidden(one, hide) for one in value)
        return value if all(map(is_, parts, value)) else parts
    return value


@cache
def plan_of(kind: type) -> FieldPlan:
    """Return what the door cleans in values of a class; in other types, nothing."""
    if not is_dataclass(kind) or kind in OWN:
        return NOTHING
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    below = tuple(name for name in names if any(plan_of(part) is not NOTHING for part in _classes_in(hints[name])))
    whose = next((name for name in ("launch_id", "session_id", "incident_id") if name in names), "")
    words, conversation = WORDS.get(kind, ()), CONVERSATION.get(kind, ())
    return FieldPlan(whose, words, conversation, below) if words or conversation or below else NOTHING


def _classes_in(hint: Any) -> list[type]:
    if get_origin(hint) in (Union, UnionType, tuple):
        return [one for part in get_args(hint) for one in _classes_in(part)]
    return [hint] if isinstance(hint, type) else []
