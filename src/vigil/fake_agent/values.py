"""Values of a script: each is checked as it is read, and an error names its place.

`${name}` is filled in from the scenario's [vars] here; the LIVE_NAMES are left for the player."""

import math
import re
import signal
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

FOREVER = math.inf
LIVE_NAMES = frozenset({"answer", "children", "cwd", "launch", "n", "now", "null", "pid", "port", "round", "session", "uuid"})
NAME = re.compile(r"\$\{([^{}]*)\}")


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
    """Replace each `${name}`; a text that is only one name takes that value's own type."""
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
