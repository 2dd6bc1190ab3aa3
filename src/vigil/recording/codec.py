"""Codec: values of the core as JSON, and back, field by field and by name.

A field that came later takes its default; a field, type or value that today's core does not know is named, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from vigil.core.effects import Effect
from vigil.core.events import Event

EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
EFFECTS: dict[str, type[Effect]] = {kind.__name__: kind for kind in get_args(Effect)}
PLAIN = {str: (str,), bool: (bool,), int: (int,), float: (int, float), NoneType: (NoneType,)}


class NotUnderstood(Exception):
    """Today's core has no place for a recorded value; the message names it."""


def dump(value: object, by: Callable[[object], dict[str, Any]] | None = None) -> str:
    """Return a value of the core as JSON on one line; enums are their words, tuples are lists, fields what `by` says."""
    return json.dumps(value, default=by or fields_of, separators=(",", ":"))


def tagged(value: Event | Effect) -> dict[str, object]:
    """Return an event or effect under the name of its type, ready to be dumped."""
    return {type(value).__name__: value}


def plain(value: object) -> Any:
    """Return a value of the core as it would be read from a recording."""
    return json.loads(dump(value))


def read_tagged(kinds: Mapping[str, type], value: Any, unknown: list[str]) -> Any:
    """Return an event or effect from under its name; names of fields nobody knows today are added to `unknown`."""
    if not isinstance(value, dict) or len(value) != 1:
        raise NotUnderstood("an event or effect stands under its name, alone")
    ((name, body),) = value.items()
    if name not in kinds:
        raise NotUnderstood(f"today's core does not know {name}")
    return read(kinds[name], body, name, unknown)


def read(hint: Any, value: Any, path: str, unknown: list[str]) -> Any:
    """Return what a type hint makes of a value from JSON; `path` says where it stands."""
    origin = get_origin(hint)
    if hint is Any:
        return value
    if hint in PLAIN:
        return _read_plain(hint, value, path)
    if origin in (Union, UnionType):
        return _read_union(get_args(hint), value, path, unknown)
    if origin is tuple:
        return _read_tuple(get_args(hint), value, path, unknown)
    if origin is not None and issubclass(origin, Mapping):
        return _read_mapping(get_args(hint), value, path, unknown)
    if isinstance(hint, type) and is_dataclass(hint):
        return _read_fields(hint, value, path, unknown)
    assert issubclass(hint, Enum), hint
    return _read_enum(hint, value, path)


def _read_plain(hint: type, value: Any, path: str) -> Any:
    if not isinstance(value, PLAIN[hint]):
        raise NotUnderstood(f"{path} is {json.dumps(value)[:40]}, not {hint.__name__}")
    return value


def _read_union(hints: tuple[Any, ...], value: Any, path: str, unknown: list[str]) -> Any:
    """Try the kinds a value may be of; unions of the core differ in what JSON they are."""
    if value is None and NoneType in hints:
        return None
    problems = []
    for hint in hints:
        if hint is not NoneType:
            try:
                return read(hint, value, path, unknown)
            except NotUnderstood as problem:
                problems.append(problem)
    raise problems[0]


def _read_tuple(hints: tuple[Any, ...], value: Any, path: str, unknown: list[str]) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise NotUnderstood(f"{path} is no list")
    each = [hints[0]] * len(value) if hints[1:] == (...,) else list(hints)
    if len(each) != len(value):
        raise NotUnderstood(f"{path} holds {len(value)} values, not {len(each)}")
    return tuple(read(hint, one, f"{path}[{i}]", unknown) for i, (hint, one) in enumerate(zip(each, value, strict=True)))


def _read_mapping(hints: tuple[Any, ...], value: Any, path: str, unknown: list[str]) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise NotUnderstood(f"{path} is no table")
    return {read(hints[0], k, path, unknown): read(hints[1], v, f"{path}.{k}", unknown) for k, v in value.items()}


def _read_enum(hint: type[Enum], value: Any, path: str) -> Enum:
    try:
        return hint(value)
    except ValueError:
        raise NotUnderstood(f"{path} is {json.dumps(value)[:40]}, which today's {hint.__name__} does not know") from None


def _read_fields(hint: type, value: Any, path: str, unknown: list[str]) -> Any:
    if not isinstance(value, dict):
        raise NotUnderstood(f"{path} is no table")
    known = _plan_of(hint)
    unknown += [f"{path}.{name}" for name in value if name not in known]
    given = {}
    for name, (field, kind) in known.items():
        if name in value:
            given[name] = read(kind, value[name], f"{path}.{name}", unknown)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise NotUnderstood(f"{path}.{name} is needed today and was not recorded")
    return hint(**given)


@cache
def _plan_of(kind: Any) -> dict[str, tuple[Field[Any], Any]]:
    """Return the fields of a type with their hints, by name."""
    hints = get_type_hints(kind)
    return {field.name: (field, hints[field.name]) for field in fields(kind)}


def fields_of(value: object) -> dict[str, Any]:
    """Return the fields of one value; what is below them is asked for in turn."""
    if isinstance(value, Mapping):
        return dict(value)
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names_of(kind)}


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))  # a TypeError where it is no value of ours
