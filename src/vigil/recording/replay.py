"""Replay: puts every recorded event through today's machine at its recorded time, and compares the answers.

After a difference it goes on with today's machine; `cause` marks where a session differs for the first time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vigil.codec import NotUnderstood, plain
from vigil.core.events import Declared, Event, Notified
from vigil.core.machine import Machine
from vigil.core.model.replace import replace
from vigil.core.model.upgrade import upgraded_incident, upgraded_notice, upgraded_session
from vigil.recording.differences import Difference, compare, deaths_in
from vigil.recording.lines import EVENTS, read_tagged, tagged
from vigil.recording.reading import Entry, Recording
from vigil.recording.words import name_of, words_of


@dataclass(frozen=True, slots=True)
class ReplayStep:
    number: int
    now: float
    kind: str
    session: str | None
    what: str
    differences: tuple[Difference, ...] = ()
    unknown: tuple[str, ...] = ()  # recorded fields that today's core does not know
    problem: str | None = None  # why today's core could not be told of it
    cause: bool = False  # a session differs here for the first time

    @property
    def differs(self) -> bool:
        """Today's core answers otherwise, or cannot be asked."""
        return bool(self.differences) or self.problem is not None


class Replay:
    """One pass over a recording, and its counts so far."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        sessions, incidents = map(upgraded_session, recording.sessions), map(upgraded_incident, recording.incidents)
        self._machine = Machine(sessions, incidents, recording.roles)
        self._differing: set[str | None] = set()
        self.names = {session.id: session.name for session in recording.sessions}  # every session met, by id
        self.events = 0
        self.deaths = 0
        self.differ = 0
        self.first: int | None = None  # the number of the first event that differs

    def steps(self) -> Iterator[ReplayStep]:
        """Yield every event in order, whether it differs or not."""
        for entry in self._recording.entries():
            step = self._step(entry)
            self.events += 1
            self.deaths += deaths_in(entry.effects or ())
            if step.differs:
                self.differ += 1
                self.first = self.first or step.number
            yield step

    def _step(self, entry: Entry) -> ReplayStep:
        unknown: list[str] = []
        kind = next(iter(entry.event), "") if isinstance(entry.event, dict) else ""
        try:
            event: Event = read_tagged(EVENTS, entry.event, unknown)
        except NotUnderstood as problem:
            words = f"{kind or 'an event'} was not replayed"
            return ReplayStep(entry.number, entry.now, kind, None, words, (), tuple(unknown), str(problem), cause=True)
        if isinstance(event, Notified):
            event = replace(event, notice=upgraded_notice(event.notice))
        if isinstance(event, Declared):
            self.names[event.session_id] = event.name
        name, what = name_of(event, self.names), words_of(event)
        then = entry.effects if entry.effects is not None else str(entry.raised)
        differences = tuple(compare(then, self._ask(event, entry.now)))
        cause = self._is_cause(differences, name)
        return ReplayStep(entry.number, entry.now, kind, name, what, differences, tuple(unknown), None, cause)

    def _ask(self, event: Event, now: float) -> list[Any] | str:
        """Return today's answer; a fault of the core is an answer too, as when it was recorded."""
        try:
            effects = self._machine.handle(event, now)
        except Exception as error:
            return fault(error)
        return [plain(tagged(effect)) for effect in effects]

    def _is_cause(self, differences: tuple[Difference, ...], name: str | None) -> bool:
        """Say whether a session differs here for the first time; things of no session count once."""
        found = {self.names.get(difference.session or "", name) for difference in differences}
        cause = bool(found - self._differing)
        self._differing |= found
        return cause


def fault(error: BaseException) -> str:
    """Return what the machine raised, in words that are the same in a replay."""
    return f"{type(error).__name__}: {error}"
