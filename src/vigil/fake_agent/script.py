"""Script: a scenario's TOML text as frozen steps, or one error that names the place.

Pure: nothing is opened and nothing is played here. Every value is checked as it is read, so the player never meets a wrong
one. `${name}` is filled in from the scenario's [vars] here; the LIVE_NAMES are left for the player.
"""

import math
import re
import signal
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Annotated, Any, get_args

FOREVER = math.inf
LIVE_NAMES = frozenset({"answer", "children", "cwd", "launch", "n", "now", "null", "pid", "port", "round", "session", "uuid"})
NAME = re.compile(r"\$\{([^}]*)\}")


class ScriptError(Exception):
    """What is wrong with a script, and where."""


@dataclass(frozen=True)
class ScriptPlace:
    """Where in the file a value stands, and the vars that hold there."""

    path: str
    vars: Mapping[str, object]

    def under(self, key: str) -> "ScriptPlace":
        return ScriptPlace(f"{self.path}.{key}" if self.path else key, self.vars)

    def item(self, index: int) -> "ScriptPlace":
        return ScriptPlace(f"{self.path}[{index}]", self.vars)

    def wrong(self, why: str) -> ScriptError:
        return ScriptError(f"{self.path}: {why}")

    def fill(self, value: object) -> object:
        return fill(value, self.look_up) if isinstance(value, str) else value

    def look_up(self, name: str) -> object:
        if name in LIVE_NAMES:
            return f"${{{name}}}"
        if name not in self.vars:
            raise self.wrong(f"${{{name}}} is neither in [vars] nor one of {listed(LIVE_NAMES)}")
        return self.vars[name]


def fill(text: str, look_up: Callable[[str], object]) -> object:
    """Replace each `${name}`; a text that is nothing but one of them takes that value's own type."""
    whole = NAME.fullmatch(text)
    return look_up(whole[1]) if whole else NAME.sub(lambda match: str(look_up(match[1])), text)


def show(value: object) -> str:
    """Return the value as its author would write it."""
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)


def listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


# How a value is read. Each returns what it was asked for, or says why that cannot be.


def read_text(at: ScriptPlace, value: object) -> str:
    if not isinstance(value, str):
        raise at.wrong(f"{show(value)} is not text")
    return str(at.fill(value))


def read_line(at: ScriptPlace, value: object) -> str:
    text = read_text(at, value)
    if len(text.splitlines()) != 1:
        raise at.wrong("is not one line of text")
    return text


def read_bytes(at: ScriptPlace, value: object) -> bytes:
    try:
        return bytes.fromhex(read_text(at, value))
    except ValueError:
        raise at.wrong(f"{show(value)} is not pairs of hexadecimal digits") from None


def read_flag(at: ScriptPlace, value: object) -> bool:
    value = at.fill(value)
    if not isinstance(value, bool):
        raise at.wrong(f"{show(value)} is not true or false")
    return value


def number(low: float, high: float, or_forever: bool = False) -> Callable[[ScriptPlace, object], float]:
    """Return the reader of a number in this range, which may be `"forever"` too."""
    needed = f"a number from {low} to {high}" if high < FOREVER else f"a number from {low} up"
    needed += ' or "forever"' if or_forever else ""

    def read_number(at: ScriptPlace, value: object) -> float:
        value = at.fill(value)
        if or_forever and value == "forever":
            return FOREVER
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high or value == FOREVER:
            raise at.wrong(f"{show(value)} is not {needed}")
        return value

    return read_number


def whole(low: int, high: float = FOREVER, or_forever: bool = False) -> Callable[[ScriptPlace, object], Any]:
    """Return the reader of a whole number in this range, which may be `"forever"` too."""
    read_number = number(low, high, or_forever)

    def read_whole(at: ScriptPlace, value: object) -> float:
        found = read_number(at, value)
        if found < FOREVER and not isinstance(found, int):
            raise at.wrong(f"{show(found)} is not a whole number")
        return found

    return read_whole


def read_signal(at: ScriptPlace, value: object) -> signal.Signals:
    name = read_text(at, value).upper().removeprefix("SIG")
    try:
        return signal.Signals["SIG" + name]
    except KeyError:
        raise at.wrong(f"{show(value)} is not the name of a signal") from None


def read_catchable(at: ScriptPlace, value: object) -> signal.Signals:
    found = read_signal(at, value)
    if found in (signal.SIGKILL, signal.SIGSTOP):
        raise at.wrong(f"{found.name} can be neither ignored nor handled")
    return found


def list_of(read_item: Callable[[ScriptPlace, object], Any]) -> Callable[[ScriptPlace, object], tuple[Any, ...]]:
    """Return the reader of a list of such items, at least one."""

    def read_list(at: ScriptPlace, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise at.wrong(f"{show(value)} is not a list with something in it")
        return tuple(read_item(at.item(index), item) for index, item in enumerate(value))

    return read_list


def read_table(at: ScriptPlace, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise at.wrong(f"{show(value)} is not a table")
    return {key: read_json(at.under(key), item) for key, item in value.items()}


def read_json(at: ScriptPlace, value: object) -> object:
    if isinstance(value, dict):
        return read_table(at, value)
    if isinstance(value, list):
        return [read_json(at.item(index), item) for index, item in enumerate(value)]
    if not isinstance(value, str | int | float):
        raise at.wrong(f"{show(value)} has no place in JSON; write it as text")
    return at.fill(value)


def read_sets(at: ScriptPlace, value: object) -> dict[str, str]:
    return {key: str(item) for key, item in read_table(at, value).items()}


Text = Annotated[str, read_text]
MaybeText = Annotated[str | None, read_text]
MaybeBytes = Annotated[bytes | None, read_bytes]
Flag = Annotated[bool, read_flag]
Seconds = Annotated[float, number(0, FOREVER, or_forever=True)]
Fraction = Annotated[float, number(0, 1)]
Count = Annotated[float, whole(0, or_forever=True)]
Whole = Annotated[int, whole(0)]
MaybeWhole = Annotated[int | None, whole(0)]
MaybePort = Annotated[int | None, whole(1, 65535)]
Code = Annotated[int, whole(0, 255)]
MaybeCode = Annotated[int | None, whole(0, 255)]
MaybeSignal = Annotated[signal.Signals | None, read_signal]
Catchable = Annotated[signal.Signals, read_catchable]
Catchables = Annotated[tuple[signal.Signals, ...], list_of(read_catchable)]
MaybeArgv = Annotated[tuple[str, ...] | None, list_of(read_text)]
Table = Annotated[dict[str, Any], read_table]
MaybeSets = Annotated[Mapping[str, str] | None, read_sets]


# The acts. A value that is no table stands for the first field: `wait = 2` is `wait = { seconds = 2 }`.


@dataclass(frozen=True)
class Print:
    """Write a line: text, or `size` bytes of filler; or raw bytes (`hex`), to which no newline is added."""

    text: MaybeText = None
    hex: MaybeBytes = None
    size: MaybeWhole = None
    stderr: Flag = False


@dataclass(frozen=True)
class Event:
    """Write the table as one line of JSON on stdout."""

    payload: Table


@dataclass(frozen=True)
class HookStep:
    """Put the table into the spool as a hook would; nothing without VIGIL_SPOOL."""

    payload: Table


@dataclass(frozen=True)
class Append:
    """Add a line to a file, and make its folder where that is missing."""

    path: Text
    text: Text


@dataclass(frozen=True)
class Wait:
    """Do nothing."""

    seconds: Seconds


@dataclass(frozen=True)
class Burn:
    """Use CPU, all the time or this fraction of it."""

    seconds: Seconds
    fraction: Fraction = 1.0


@dataclass(frozen=True)
class MemoryStep:
    """Take memory, touch it, and hold it."""

    mb: Whole


@dataclass(frozen=True)
class Listen:
    """Listen on free ports of 127.0.0.1, and hold the sockets."""

    count: Whole = 1


@dataclass(frozen=True)
class Connect:
    """Connect to a port of 127.0.0.1 (to the own listener, if none is given) and hold it; `send` goes out every so often."""

    port: MaybePort = None
    send: MaybeText = None
    every: Seconds = 1.0


@dataclass(frozen=True)
class ChildStep:
    """Start children: a command, or a scenario. Without `wait` they are left behind and never waited for."""

    argv: MaybeArgv = None
    scenario: MaybeText = None
    set: MaybeSets = None
    count: Whole = 1
    new_session: Flag = False
    ignore_hup: Flag = False
    wait: Flag = False


@dataclass(frozen=True)
class Ignore:
    """Ignore these signals from here on."""

    signals: Catchables


@dataclass(frozen=True)
class Handle:
    """Answer this signal by leaving with `exit`, `after` seconds later."""

    signal: Catchable
    exit: Code = 0
    after: Seconds = 0.0


@dataclass(frozen=True)
class Ask:
    """Write the prompt and read a line. If it is `expect`, leave with `then`; else go on. At end of input wait for ever."""

    prompt: Text
    expect: MaybeText = None
    then: Code = 0
    echo: Flag = False
    at_eof: MaybeCode = None


@dataclass(frozen=True)
class ExitStep:
    """Leave with this code, or by this signal."""

    code: MaybeCode = None
    signal: MaybeSignal = None


Act = (
    Print
    | Event
    | HookStep
    | Append
    | Wait
    | Burn
    | MemoryStep
    | Listen
    | Connect
    | ChildStep
    | Ignore
    | Handle
    | Ask
    | ExitStep
)
KINDS: dict[str, type[Act]] = {
    "print": Print,
    "event": Event,
    "hook": HookStep,
    "append": Append,
    "wait": Wait,
    "burn": Burn,
    "memory": MemoryStep,
    "listen": Listen,
    "connect": Connect,
    "child": ChildStep,
    "ignore": Ignore,
    "handle": Handle,
    "ask": Ask,
    "exit": ExitStep,
}
EXACTLY_ONE: dict[type, frozenset[str]] = {
    Print: frozenset({"text", "hex", "size"}),
    ChildStep: frozenset({"argv", "scenario"}),
    ExitStep: frozenset({"code", "signal"}),
}
NEEDS: dict[type, dict[str, str]] = {  # a key that would mean nothing without another
    ChildStep: {"set": "scenario"},
    Connect: {"every": "send"},
    Ask: {"then": "expect"},
}


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
    """Return the text as a value of the default's kind, where it reads as one; whoever uses it refuses the rest."""
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
    """Return the act's values by key, each with its place; a value that is no table stands for the first field."""
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
