"""Voice: one source of an agent's events, by the fields where they hold what all of them have.

An event that says one thing is a row of a table: what it says, and the fields that hold the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from vigil.agents.shapes import Json, declared, event_name, flag, moment, text, word
from vigil.core.model.speech import Said, Usage, What

Reader = Callable[[Json], Iterable[Said]]
Readers = Mapping[str, Reader]


@dataclass(frozen=True)
class Voice:
    """The fields of a source's events; a field without a name is absent."""

    at: str = ""
    conversation: str = ""
    subagent: str = ""

    def say(
        self,
        event: Json,
        what: What,
        name: str = "",
        id: str = "",
        why: str = "",
        failed: bool = False,
        until: float | None = None,
        usage: Usage | None = None,
    ) -> Said:
        """Return one thing that an event says."""
        at, conversation, subagent = moment(event, self.at), word(event, self.conversation), word(event, self.subagent)
        return Said(what, at, name, id, why, until, conversation, usage, failed, subagent)

    def says(self, what: What, name: str = "", id: str = "", why: str = "", failed: str = "") -> Reader:
        """Return the reader of an event that says just this; the words are its fields' names."""
        return lambda event: (self.say(event, what, word(event, name), word(event, id), word(event, why), flag(event, failed)),)

    def read(self, event: Json, readers: Readers, key: str = "type", within: str = "") -> Iterable[Said]:
        """Return what an event says, by the reader of its kind; one without a reader is unknown."""
        reader = readers.get(text(event, key))
        return reader(event) if reader else (self.say(event, What.UNKNOWN, within + word(event, key)),)

    def read_hook(self, payload: Json, readers: Readers) -> Iterable[Said]:
        """Return what a hook's payload says, plainly or by the reader of its event."""
        plainly, name = declared(payload), event_name(payload)
        if plainly is not None:
            return (plainly,)
        return readers[name](payload) if name in readers else (self.say(payload, What.UNKNOWN, name),)
