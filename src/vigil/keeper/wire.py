"""The wire between daemon and keeper: one JSON object a line over a unix socket, checked field by field.

A request carries `id` and `do`, its answer `re` and `ok`, an unasked word `ev`. A reader ignores unknown keys (versions)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from vigil.keeper.protocol import (
    ANSWERS,
    NAMES,
    REQUESTS,
    WORDS,
    Answer,
    KillFacts,
    Process,
    RefusedAnswer,
    Request,
    SnapshotWord,
    Watch,
    Word,
)

LINE_BYTES = 1 << 20

Message = dict[str, Any]
T = TypeVar("T")


class Malformed(ValueError):
    """A message that its reader does not understand; the text says why."""


# Writing


def encode_request(number: int, request: Request) -> bytes:
    """Return a request as its line; the answer names the number."""
    return encode({"id": number, "do": NAMES[type(request)], **as_json(request)})


def encode_answer(number: int, answer: Answer) -> bytes:
    """Return the answer to a request of this number as its line."""
    return encode({"re": number, "ok": not isinstance(answer, RefusedAnswer), **as_json(answer)})


def encode_word(word: Word) -> bytes:
    """Return what the keeper tells unasked as its line."""
    # A daemon that knows only exits takes a snapshot for a stranger's exit.
    stranger = {"role": "", "pid": 0} if isinstance(word, SnapshotWord) else {}
    return encode({"ev": NAMES[type(word)], **as_json(word), **stranger})


def encode(message: Message) -> bytes:
    """Return an object as its line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def as_json(value: Any) -> Any:
    """Return a value as it is written, without fields at their default."""
    usual = getattr(value, "_field_defaults", None)
    if usual is None:
        return [as_json(one) for one in value] if isinstance(value, tuple) else value
    return {name: as_json(one) for name, one in value._asdict().items() if (name, one) not in usual.items()}


# Reading


class Lines:
    """Cuts a byte stream into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now; an endless line is Malformed, with all that follows."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            raise Malformed("a line without end")
        return [line for line in lines if line]


def decode(line: bytes) -> Message:
    """Return the object on a line; any other line is Malformed."""
    try:
        message = json.loads(line)
    except RecursionError:
        raise Malformed("nested without end") from None
    except ValueError as error:
        raise Malformed(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise Malformed("not an object")
    return message


def number_in(message: Message, key: str) -> int:
    """Return the number under `id` or `re`; 0 where there is none."""
    number = message.get(key)
    return number if isinstance(number, int) else 0


def read_request(message: Message) -> Request:
    """Return what the daemon asks."""
    return _read_named(REQUESTS, "do", message)


def read_word(message: Message) -> Word:
    """Return what the keeper tells unasked."""
    return _read_named(WORDS, "ev", message)


def read_answer(request: Request, message: Message) -> Answer:
    """Return what the keeper answers to a request."""
    return read_refusal(message) or read(ANSWERS[type(request)], message)


def read_refusal(message: Message) -> RefusedAnswer | None:
    """Return the refusal, if the keeper refused; older keepers gave some reasons as `error`."""
    if message.get("ok") is True:
        return None
    return RefusedAnswer(str(message.get("why") or message.get("error") or "no reason given"))


def _read_named(kinds: Mapping[str, type[T]], key: str, message: Message) -> T:
    name = message.get(key)
    if not isinstance(name, str) or name not in kinds:
        raise Malformed(f"{key} {_shown(name)} is not known")
    try:
        return read(kinds[name], message)
    except Malformed as error:
        raise Malformed(f"{name}: {error}") from None


def read(kind: type[T], message: Message) -> T:
    """Return a message or a record as a value; a missing field has its default."""
    usual: dict[str, Any] = getattr(kind, "_field_defaults", {})
    said = ((name, wanted, message.get(name, usual.get(name))) for name, wanted in kind.__annotations__.items())
    return kind(**{name: READERS[wanted](name, value) for name, wanted, value in said})


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise Malformed(f"{name} is not a text: {_shown(value)}")


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise Malformed(f"{name} is not true or false: {_shown(value)}")


def _whole(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Malformed(f"{name} is not a whole number: {_shown(value)}")


def _number(name: str, value: object) -> float:
    try:
        return value if isinstance(value, float) else float(_whole(name, value))
    except OverflowError:
        raise Malformed(f"{name} is too large: {_shown(value)}") from None


def _process(name: str, value: object) -> Process:
    match value:
        case [int(pid), int(start_ticks)]:
            return pid, start_ticks
        case _:
            raise Malformed(f"{name} is not a pid and its start ticks: {_shown(value)}")


def _watches(name: str, value: object) -> tuple[Watch, ...]:
    if isinstance(value, list) and all(isinstance(watch, dict) for watch in value):
        return tuple(read(Watch, watch) for watch in value)
    raise Malformed(f"{name} is not a list of objects: {_shown(value)}")


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return tuple(value)
    raise Malformed(f"{name} is not a list of texts")  # not shown: it may hold a secret


def _named_numbers(name: str, value: object) -> dict[str, int]:
    if isinstance(value, dict):
        return {key: _whole(name, number) for key, number in value.items()}
    raise Malformed(f"{name} is not an object: {_shown(value)}")


def _named_texts(name: str, value: object) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    raise Malformed(f"{name} is not an object of texts")  # not shown: it may hold a secret


def _facts(name: str, value: object) -> KillFacts:
    if isinstance(value, dict):
        return read(KillFacts, value)
    raise Malformed(f"{name} is not an object: {_shown(value)}")


def _shown(value: object) -> str:
    return repr(value)[:60]


def _or_none(reader: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else reader(name, value)


READERS: dict[Any, Callable[[str, Any], Any]] = {  # of a field, by what it is
    str: _text,
    bool: _flag,
    int: _whole,
    float: _number,
    Process: _process,
    tuple[Watch, ...]: _watches,
    tuple[str, ...]: _texts,
    dict[str, str]: _named_texts,
    dict[str, int]: _named_numbers,
    KillFacts: _facts,
}
READERS |= {kind | None: _or_none(reader) for kind, reader in READERS.items()}
