"""Differences: two answers to one event, side by side, as plain JSON: so values that today's core dropped can be shown.

A field that the recording lacks is not compared, a table's key always is. What was redacted matches anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vigil.recording.shown import is_same

# Part of a Persist: the name of one thing of it.
PARTS = {
    "sessions": "session",
    "launches": "launch",
    "deaths": "death",
    "intents": "intent",
    "incidents": "incident",
    "removed": "removal",
    "log": "log",
}
TABLES = frozenset({"agents", "axes", "data", "read_to", "worked"})  # of these the key is data, not a field of the model
FIRST = ("state", "why", "hold", "doubt", "charges", "cause")  # a person asks for these first
INSIDE = ("launch.", "last_death.", "intent.", "session.", "incident.")  # copies of what is compared by itself
ORDER = ("answer", "death", "removal", "session")  # then effects, then the rest of what is made durable
DURABLE = tuple(PARTS.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: its `field`, or all of it if that is empty; None is absent."""

    of: str
    id: str
    session: str | None  # the id of its session
    field: str
    then: Any
    now: Any

    @property
    def is_echo(self) -> bool:
        """It repeats another difference: a log line of it, or a copy inside something else."""
        return self.of == "log" or self.field.startswith(INSIDE)


def compare(then: list[Any] | str, now: list[Any] | str) -> list[Difference]:
    """Return what differs between two answers, most important first; a text is what the machine raised."""
    if isinstance(then, str) or isinstance(now, str):
        return [] if is_same(then, now) else [Difference("answer", "", None, "", _words(then), _words(now))]
    before, after = _things(then), _things(now)
    found: list[Difference] = []
    for key in [*before, *(key for key in after if key not in before)]:
        found += _compare_things(key, before.get(key), after.get(key))
    if not found and (orders := (_effects(before), _effects(after)))[0] != orders[1]:
        found.append(Difference("order", "", None, "", *orders))
    return sorted(found, key=_rank)


def deaths_in(answer: Iterable[Any]) -> int:
    return sum(of == "death" for of, _ in _things(answer))


Key = tuple[str, str]


def _things(answer: Iterable[Any]) -> dict[Key, Any]:
    """Return everything an answer holds by kind and owner."""
    found: dict[Key, Any] = {}
    seen: Counter[Key] = Counter()
    for name, body in ((name, body) for effect in answer if isinstance(effect, dict) for name, body in effect.items()):
        parts = _parts(body) if name == "Persist" else [(name, body)]
        for of, thing in parts:
            key = (of, _id_of(of, thing))
            seen[key] += 1
            found[key if seen[key] == 1 else (of, f"{key[1]} #{seen[key]}")] = thing
    return found


def _parts(persist: Any) -> Iterator[tuple[str, Any]]:
    parts: dict[str, Any] = persist if isinstance(persist, dict) else {}
    for part, things in parts.items():
        for thing in things if isinstance(things, list) else [things]:
            yield PARTS.get(part, part), thing


def _id_of(of: str, thing: Any) -> str:
    """Return a thing's owner: two answers that name it speak of the same."""
    if not isinstance(thing, dict):
        return str(thing)
    if of == "log":
        return f"{thing.get('kind')} {thing.get('session') or ''}".strip()
    if of == "SetTimer":
        return f"{thing.get('session_id')} {thing.get('kind')}"
    for part in ("launch", "incident", "session"):
        if of not in DURABLE and isinstance(thing.get(part), dict):
            return str(thing[part].get("id"))
    return str(thing.get("id"))


def _session_of(of: str, thing: Any) -> str | None:
    if not isinstance(thing, dict):
        return str(thing) if of == "removal" else None
    if of == "session":
        return str(thing.get("id"))
    below = (thing[part] for part in ("launch", "incident") if isinstance(thing.get(part), dict))
    found = thing.get("session_id") or next((part.get("session_id") for part in below), None)
    session = thing.get("session")
    return found or (session.get("id") if isinstance(session, dict) else None)


def _compare_things(key: Key, then: Any, now: Any) -> Iterator[Difference]:
    of, id_ = key
    session = _session_of(of, then if now is None else now)
    if then is None or now is None:
        yield Difference(of, id_, session, "", then, now)
        return
    for field, before, after in _fields(then, now, "", table=False):
        yield Difference(of, id_, session, field, before, after)


def _fields(then: Any, now: Any, path: str, table: bool) -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields that differ, as deep down as both sides have them."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in [*then, *(name for name in now if table and name not in then)]:
            # A person looks for the field, not for the part of a session that holds it.
            below = path if name == "vitals" else f"{path}.{name}" if path else name
            yield from _fields(then.get(name), now.get(name), below, name in TABLES)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for i, (before, after) in enumerate(zip(then, now, strict=True)):
            yield from _fields(before, after, f"{path}[{i}]", table=False)
    elif not is_same(then, now):
        yield path, then, now


def _effects(things: dict[Key, Any]) -> list[str]:
    """Return acts in their order, then tellings: a Tell or a timer may stand anywhere among acts."""
    found = [key for key in things if key[0] not in DURABLE and key[0] != "SetTimer"]
    return [f"{of} {id_}" for of, id_ in sorted(found, key=lambda key: key[0] == "Tell")]


def _rank(difference: Difference) -> tuple[bool, int, int]:
    of, name = difference.of, difference.field.partition(".")[0]
    kind = ORDER.index(of) if of in ORDER else len(ORDER) + (of in DURABLE)
    return difference.is_echo, kind, FIRST.index(name) if name in FIRST else len(FIRST)


def _words(answer: list[Any] | str) -> str:
    return f"raised {answer}" if isinstance(answer, str) else "answered"
