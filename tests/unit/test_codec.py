"""Every stored and recorded value comes back as it was; what today's core does not know is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.builders import make_exit, make_session, make_spec
from vigil.codec import NotUnderstood, dump, load, plain
from vigil.core.effects import Effect, Persist
from vigil.core.events import Declared, Event, Exited, Noted
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.recording.differences import TABLES
from vigil.recording.lines import EVENTS, read_tagged, tagged
from vigil.recording.words import WORDS, name_of, words_of

EFFECTS: dict[str, type[Effect]] = {kind.__name__: kind for kind in get_args(Effect)}
FLOATS = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(), max_size=8)  # surrogates too: a command may hold bytes that are no UTF-8
JSON = st.recursive(st.none() | st.booleans() | st.integers() | FLOATS | TEXTS, lambda inner: st.lists(inner, max_size=3))
PLAIN = {str: TEXTS, bool: st.booleans(), int: st.integers(), float: FLOATS | st.integers(), NoneType: st.none(), Any: JSON}


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return every value that a type hint of the core allows: each field is drawn, none is left at its default."""
    parts = get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if get_origin(hint) is UnionType:
        return st.one_of(*map(values_of, parts))
    if get_origin(hint) is Mapping:
        return st.dictionaries(*map(values_of, parts), max_size=3)
    if get_origin(hint) is tuple and parts[1:] == (...,):
        return st.lists(values_of(parts[0]), max_size=2).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(values_of, parts))
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    return st.builds(hint, **{name: values_of(inner) for name, inner in get_type_hints(hint).items()})


def unions() -> list[type]:
    return [*get_args(Event), *get_args(Effect)]


def test_no_event_is_forgotten() -> None:
    assert set(EVENTS.values()) == set(get_args(Event)) == set(WORDS)


@pytest.mark.parametrize("kind", unions(), ids=lambda kind: kind.__name__)
@settings(max_examples=50)
@given(data=st.data())
def test_it_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    unknown: list[str] = []

    line = dump(tagged(value))
    back = read_tagged(EVENTS | EFFECTS, json.loads(line), unknown)

    assert back == value
    assert type(back) is kind
    assert unknown == []
    assert "\n" not in line
    assert line.isascii()


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_every_event_has_words(kind: type, data: st.DataObject) -> None:
    event = data.draw(values_of(kind))

    assert words_of(event)
    name_of(event, {})


@pytest.mark.parametrize("kind", [Session, Incident])
@given(data=st.data())
def test_what_a_machine_begins_with_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))

    assert load(kind, dump(value)) == value


def test_a_field_that_came_later_takes_its_default() -> None:
    recorded = plain(tagged(Exited(make_exit(exit_code=3))))
    del recorded["Exited"]["exit"]["rebooted"], recorded["Exited"]["exit"]["signal"]

    assert read_tagged(EVENTS, recorded, []) == Exited(make_exit(exit_code=3))


def test_a_field_that_nobody_knows_today_is_named_and_the_rest_is_read() -> None:
    recorded = plain(tagged(Exited(make_exit(exit_code=3))))
    recorded["Exited"]["exit"]["colour"] = "red"
    unknown: list[str] = []

    assert read_tagged(EVENTS, recorded, unknown) == Exited(make_exit(exit_code=3))
    assert unknown == ["Exited.exit.colour"]


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        ({"Vanished": {}}, "does not know Vanished"),
        ({"Asked": {"verb": "stop", "session_id": "s1"}}, "Asked.actor is needed today"),
        ({"Asked": {"verb": "stop", "session_id": 7, "actor": "alice"}}, "Asked.session_id is 7, not str"),
        (
            {"Asked": {"verb": "dance", "session_id": "s1", "actor": "alice"}},
            'Asked.verb is "dance", which today\'s IntentVerb',
        ),
        ({"Condition": {"kind": "flood", "holds": True, "why": "", "at": 1.0}}, 'Condition.kind is "flood"'),
        ({"Swept": {"observed": {}, "looked_at": 1}}, "Swept.observed is no list"),
        ({"Noted": {"kind": "x", "data": [["a", 1, 2]]}}, "holds 3 values, not 2"),
        ({"Resumed": []}, "Resumed is no table"),
        ({}, "stands under its name"),
        (None, "stands under its name"),
    ],
)
def test_what_cannot_be_read_says_what_and_where(recorded: Any, words: str) -> None:
    with pytest.raises(NotUnderstood, match=words.replace(".", r"\.")):
        read_tagged(EVENTS, recorded, [])


def test_a_recording_holds_nothing_but_the_fields_of_its_values() -> None:
    recorded = plain(tagged(Declared("s1", "alpha", make_spec(), "alice")))

    assert set(recorded["Declared"]) == {field.name for field in fields(Declared)}


def test_a_value_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(TypeError):
        dump(Noted("x", (("key", b"bytes"),)))  # type: ignore[arg-type]


def test_fields_that_are_tables_are_known_as_such() -> None:
    found: set[str] = set()
    todo: list[Any] = unions()
    seen: set[Any] = set()
    while todo:
        hint = todo.pop()
        if hint in seen:
            continue
        seen.add(hint)
        todo += get_args(hint)
        if isinstance(hint, type) and is_dataclass(hint):
            hints = get_type_hints(hint)
            found |= {name for name, inner in hints.items() if getattr(inner, "__origin__", None) is Mapping}
            todo += hints.values()

    assert found == TABLES


def test_sessions_inside_effects_are_read_too() -> None:
    session = make_session()

    assert read_tagged(EFFECTS, plain(tagged(Persist((session,)))), []) == Persist((session,))
