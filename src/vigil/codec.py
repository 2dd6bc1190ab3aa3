"""Codec: stored and recorded values as JSON, and back, field by field and by name.

A later field takes its default; the codec names a field, type or value that today's core does not know, and never guesses."""

# Not pydantic: it refuses text that is no UTF-8, and names no unknown field. It saves 40 ms of 500 loads, 0.1 of a death.

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
PLAIN: dict[Any, frozenset[type]] = {
    str: frozenset({str}),
    bool: frozenset({bool}),
    int: frozenset({int, bool}),
    float: frozenset({float, int, bool}),
    NoneType: frozenset({NoneType}),
}
ABSENT: Any = object()
# Where a value stands: its parent, and its step below that; put into words only where needed.
Path = tuple[Any, ...]
Reader = Callable[[Any, Path, list[str]], Any]


class NotUnderstood(Exception):
    """Today's core has no place for a stored or recorded value; the message names it."""

    def __init__(self, path: Path, problem: str, value: Any = ABSENT) -> None:
        where = words_for(path)
        # The same without the value, which may be a secret.
        self.hidden = f"{where} {problem}".lstrip() if value is ABSENT else f"{where} is …, {problem}"
        super().__init__(self.hidden if value is ABSENT else f"{where} is {json.dumps(value)[:40]}, {problem}")


def dump(value: object, by: Callable[[Any], dict[str, Any]] | None = None) -> str:
    """Return a value as JSON on one line; enums are their words, tuples are lists, fields what `by` says."""
    return (_ENCODER if by is None else _encoder(by)).encode(value)


def plain(value: object) -> Any:
    """Return a value as it would be read from JSON."""
    return json.loads(dump(value))


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of one value; the encoder asks for those below in turn."""
    kind: Any = type(value)
    return _taken_apart_by(kind)(value)


@cache
def _taken_apart_by(kind: Any) -> Callable[[Any], dict[str, Any]]:
    if issubclass(kind, Mapping):
        return dict
    names = tuple(field.name for field in fields(kind))  # a TypeError for a foreign value
    if len(names) < 2:
        return lambda value: {name: getattr(value, name) for name in names}
    read_all = attrgetter(*names)
    return lambda value: dict(zip(names, read_all(value), strict=True))


@cache
def _encoder(by: Callable[[Any], dict[str, Any]]) -> json.JSONEncoder:
    return json.JSONEncoder(default=by, separators=(",", ":"), check_circular=False)  # frozen values hold no circle


_ENCODER = _encoder(fields_of)


def load(kind: type[T], body: str) -> T:
    """Return a value from its JSON; NotUnderstood says which field cannot be read."""
    hint: Any = kind
    path = ((), kind.__name__)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise NotUnderstood(path, "is no JSON") from None
    found: T = reader_of(hint)(value, path, [])
    return found


def read(hint: Any, value: Any, path: str, unknown: list[str]) -> Any:
    """Return what a type hint makes of a JSON value; adds the names of unknown fields to `unknown`."""
    return reader_of(hint)(value, ((), path), unknown)


def words_for(path: Path) -> str:
    """Return where a value stands, in words."""
    steps = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


@cache
def reader_of(hint: Any) -> Reader:
    """Return a reader of a type's JSON values."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, _path, _unknown: value
    if _plain_of(hint):
        return _plain_reader(hint)
    if origin in (Union, UnionType):
        return _union_reader(parts)
    if origin is tuple:
        return _list_reader(parts[0]) if parts[1:] == (...,) else _tuple_reader(parts)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(parts)
    if is_dataclass(hint):
        return _fields_reader(hint)
    assert issubclass(hint, Enum), hint
    return _enum_reader(hint)


def _plain_of(hint: Any) -> frozenset[type]:
    """Return the JSON types taken as they are; none where a value must be made."""
    if get_origin(hint) in (Union, UnionType):
        each = [_plain_of(part) for part in get_args(hint)]
        return frozenset().union(*each) if all(each) else frozenset()
    return PLAIN.get(hint, frozenset()) if isinstance(hint, type) else frozenset()


def _plain_reader(hint: Any) -> Reader:
    allowed = _plain_of(hint)
    name = next(part.__name__ for part in (*get_args(hint), hint) if part is not NoneType or hint is NoneType)

    def read_plain(value: Any, path: Path, _unknown: list[str]) -> Any:
        if type(value) not in allowed:
            raise NotUnderstood(path, f"not {name}", value)
        return value

    return read_plain


def _union_reader(hints: tuple[Any, ...]) -> Reader:
    """Try the kinds a value may be of; the core's unions differ in their JSON."""
    may_be_none = NoneType in hints
    readers = [reader_of(hint) for hint in hints if hint is not NoneType]

    def read_union(value: Any, path: Path, unknown: list[str]) -> Any:
        if value is None and may_be_none:
            return None
        problems = []
        for read_one in readers:
            try:
                return read_one(value, path, unknown)
            except NotUnderstood as problem:
                problems.append(problem)
        raise problems[0]

    return read_union


def _list_reader(hint: Any) -> Reader:
    read_one = reader_of(hint)

    def read_list(value: Any, path: Path, unknown: list[str]) -> tuple[Any, ...]:
        if type(value) is not list:
            raise NotUnderstood(path, "is no list")
        return tuple([read_one(one, (path, i), unknown) for i, one in enumerate(value)])

    return read_list


def _tuple_reader(hints: tuple[Any, ...]) -> Reader:
    readers = tuple(map(reader_of, hints))

    def read_tuple(value: Any, path: Path, unknown: list[str]) -> tuple[Any, ...]:
        if type(value) is not list:
            raise NotUnderstood(path, "is no list")
        if len(value) != len(readers):
            raise NotUnderstood(path, f"holds {len(value)} values, not {len(readers)}")
        return tuple(read_one(one, (path, i), unknown) for i, (read_one, one) in enumerate(zip(readers, value, strict=True)))

    return read_tuple


def _mapping_reader(hints: tuple[Any, ...]) -> Reader:
    read_key, read_one = map(reader_of, hints)

    def read_mapping(value: Any, path: Path, unknown: list[str]) -> dict[Any, Any]:
        if type(value) is not dict:
            raise NotUnderstood(path, "is no table")
        return {read_key(key, path, unknown): read_one(one, (path, key), unknown) for key, one in value.items()}

    return read_mapping


def _enum_reader(kind: type[Enum]) -> Reader:
    def read_enum(value: Any, path: Path, _unknown: list[str]) -> Enum:
        try:
            return kind(value)
        except ValueError:
            raise NotUnderstood(path, f"which today's {kind.__name__} does not know", value) from None

    return read_enum


def _fields_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    known = {field.name: (hints[field.name], _default_of(field)) for field in fields(kind)}
    plan = [(name, _plain_of(hint), reader_of(hint), default) for name, (hint, default) in known.items()]

    def read_fields(value: Any, path: Path, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise NotUnderstood(path, "is no table")
        given, found = [], 0
        for name, allowed, read_one, default in plan:
            one = value.get(name, ABSENT)
            if one is ABSENT:
                if default is None:
                    raise NotUnderstood((path, name), "is needed today and was not recorded")
                given.append(default())
                continue
            found += 1
            # Most fields are text, numbers and flags: this checks them without a call.
            given.append(one if type(one) in allowed else read_one(one, (path, name), unknown))
        if found < len(value):
            unknown += [words_for((path, name)) for name in value if name not in known]
        return kind(*given)

    return read_fields


def _default_of(field: Field[Any]) -> Callable[[], Any] | None:
    """Return the default of a later field as a factory; None if it has none."""
    if field.default_factory is not MISSING:
        return field.default_factory
    return None if field.default is MISSING else lambda: field.default
