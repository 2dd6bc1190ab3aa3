"""Script: a scenario's TOML text as frozen steps, or one error that names the place.

Pure: it opens and plays nothing. Every value is checked as it is read, so the player never meets a wrong one."""

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, get_args

from vigil.fake_agent.acts import EXACTLY_ONE, KINDS, NEEDS, Act
from vigil.fake_agent.values import (
    LIVE_NAMES,
    Count,
    ScriptError,
    ScriptPlace,
    Seconds,
    Table,
    list_of,
    listed,
    read_line,
    show,
    whole,
)


@dataclass(frozen=True)
class ScriptStep:
    """One act, how often it is played, and how long to wait in between."""

    act: Act
    path: str
    repeat: Count = 1
    every: Seconds = 0.0


@dataclass(frozen=True)
class Script:
    """A whole scenario; all its steps are played `repeat` times."""

    about: str
    steps: tuple[ScriptStep, ...]
    vars: Mapping[str, object]
    repeat: Count = 1


def parse(text: str, sets: Mapping[str, str] | None = None) -> Script:
    """Read a scenario; `sets` replaces values of its [vars]."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(f"not TOML: {error}") from None
    top = ScriptPlace("", {})
    refuse_unknown(top, document, {"about", "vars", "repeat", "step"})
    if "about" not in document:
        raise top.under("about").wrong("missing")
    about = read_line(top.under("about"), document["about"])
    top = ScriptPlace("", read_vars(top.under("vars"), document.get("vars", {}), sets or {}))
    steps = list_of(read_step)(top.under("step"), document.get("step", []))
    repeat = whole(0, or_forever=True)(top.under("repeat"), document.get("repeat", 1))
    return Script(about, steps, top.vars, repeat)


def refuse_unknown(at: ScriptPlace, given: Collection[str], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            raise at.under(key).wrong(f"unknown; there are {listed(known)}")


def read_vars(at: ScriptPlace, table: object, sets: Mapping[str, str]) -> dict[str, object]:
    """Return the [vars] with their replacements."""
    if not isinstance(table, dict):
        raise at.wrong(f"{show(table)} is not a table")
    for name, value in table.items():
        if name in LIVE_NAMES:
            raise at.under(name).wrong("the name is taken by the player")
        if not isinstance(value, str | int | float):
            raise at.under(name).wrong(f"{show(value)} is not text, a number, true or false")
    for name in sets:
        if name not in table:
            raise ScriptError(f"--set {name}: the scenario has no such var; it has {listed(table) or 'none'}")
    return table | {name: like(table[name], text) for name, text in sets.items()}


def like(default: object, text: str) -> object:
    """Return the text as a value of the default's kind, where it reads as one; its user refuses the rest."""
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text, text)
    if isinstance(default, str) and default != "forever":  # which stands where a number may
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_step(at: ScriptPlace, table: object) -> ScriptStep:
    if not isinstance(table, dict):
        raise at.wrong(f"{show(table)} is not a table")
    refuse_unknown(at, table, {*KINDS, "repeat", "every"})
    kinds = [key for key in table if key in KINDS]
    if len(kinds) != 1:
        raise at.wrong(f"a step has one act, not {len(kinds)}")
    place = at.under(kinds[0])
    act = read_act(place, KINDS[kinds[0]], table[kinds[0]])
    modifiers = {field.name: field for field in fields(ScriptStep) if field.name in table}
    return ScriptStep(act, place.path, **{key: reader_of(field)(at.under(key), table[key]) for key, field in modifiers.items()})


def read_act(at: ScriptPlace, shape: type[Act], value: object) -> Act:
    known = {field.name: field for field in fields(shape)}
    given = located(at, fields(shape)[0], value)
    refuse_unknown(at, given, known)
    refuse_incomplete(at, shape, given)
    return shape(**{key: reader_of(known[key])(place, item) for key, (place, item) in given.items()})


def located(at: ScriptPlace, first: Field[Any], value: object) -> dict[str, tuple[ScriptPlace, object]]:
    """Return the act's values by key, each with its place; a bare value stands for the first field."""
    if isinstance(value, dict) and first.type is not Table:
        return {key: (at.under(key), item) for key, item in value.items()}
    return {first.name: (at, value)}


def refuse_incomplete(at: ScriptPlace, shape: type[Act], given: Collection[str]) -> None:
    for field in fields(shape):
        if field.default is MISSING and field.name not in given:
            raise at.under(field.name).wrong("missing")
    alternatives = EXACTLY_ONE.get(shape)
    if alternatives and len(alternatives.intersection(given)) != 1:
        raise at.wrong(f"needs exactly one of {listed(alternatives)}")
    for key, needed in NEEDS.get(shape, {}).items():
        if key in given and needed not in given:
            raise at.under(key).wrong(f"means nothing without {needed}")


def reader_of(field: Field[Any]) -> Callable[[ScriptPlace, object], Any]:
    """Return the reader that the field's type carries."""
    reader: Callable[[ScriptPlace, object], Any] = get_args(field.type)[1]
    return reader
