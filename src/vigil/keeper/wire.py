"""The wire between daemon and keeper: one JSON object a line over a unix socket, checked field by field.

A request carries `id` and `do`, its answer `re` and `ok`, an unasked word `ev`. A reader ignores unknown keys (versions)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

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
WHOLE = 1 << 63
LATEST = 1e11  # the year 5138: all numbers with a fraction are moments

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
    return RefusedAnswer(str(message.get("why") or message.get("error") or "no reason given"), message.get("short") is True)


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
    wanted = kind.__annotations__.items()
    return kind(**{name: _field(name, type_, message.get(name, usual.get(name))) for name, type_ in wanted})


class FieldKind(NamedTuple):
    """How a field of one type is checked and read."""

    words: str
    fits: Callable[[Any], bool]
    made: Callable[[Any], Any] = lambda value: value
    secret: bool = False  # a wrong value is not shown


def _field(name: str, wanted: Any, value: object) -> Any:
    if value is None and wanted in OPTIONAL:
        return None
    kind = FIELD_KINDS[OPTIONAL.get(wanted, wanted)]
    if kind.fits(value):
        return kind.made(value)
    raise Malformed(f"{name} is not {kind.words}" + ("" if kind.secret else f": {_shown(value)}"))


def _shown(value: object) -> str:
    return repr(value)[:60]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -WHOLE < value < WHOLE


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LATEST < value < LATEST  # no NaN is


def _is_process(value: object) -> bool:
    match value:
        case [int(pid), int(start_ticks)]:
            return 0 < pid < 1 << 31 and 0 <= start_ticks < WHOLE
    return False


def _are(container: type[list[Any]] | type[dict[str, Any]], is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return the check of a list, or of an object's values."""
    return lambda value: (
        isinstance(value, container) and all(map(is_item, value.values() if isinstance(value, dict) else value))
    )


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


FIELD_KINDS: dict[Any, FieldKind] = {
    str: FieldKind("a text", _is(str)),
    bool: FieldKind("true or false", _is(bool)),
    int: FieldKind("a whole number", _is_whole),
    float: FieldKind("a moment", _is_moment, float),
    Process: FieldKind("a pid and its start ticks", _is_process, tuple),
    tuple[str, ...]: FieldKind("a list of texts", _are(list, _is(str)), tuple, secret=True),
    dict[str, str]: FieldKind("an object of texts", _are(dict, _is(str)), secret=True),
    dict[str, int]: FieldKind("an object of whole numbers", _are(dict, _is_whole)),
    tuple[Watch, ...]: FieldKind(
        "a list of objects", _are(list, _is(dict)), lambda found: tuple(read(Watch, one) for one in found)
    ),
    KillFacts: FieldKind("an object", _is(dict), lambda found: read(KillFacts, found)),
}
OPTIONAL = {kind | None: kind for kind in FIELD_KINDS}
