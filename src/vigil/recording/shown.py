"""What a recording shows of a value: all its fields, commands and words without secrets, to be given away.

Names, ids and states stay as they are whatever they look like: a replay needs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from vigil.codec import fields_of
from vigil.core.effects import LogEntry
from vigil.core.events import Noted
from vigil.core.model.session import Spec
from vigil.redact import MARK, Redactor, redact_command

WORDS = (
    "why",
    "text",
    "reason",
    "resolution",
    "unended",
)  # fields for people: the machine hands them on and decides nothing by them
REDACTOR = Redactor()


@cache
def shown_by(redactor: Redactor) -> Callable[[object], dict[str, Any]]:
    """Return what shows the fields of a value without what this redactor hides."""

    def shown_fields_of(value: object) -> dict[str, Any]:
        fields = fields_of(value)
        for name in WORDS:
            if isinstance(fields.get(name), str):
                fields[name] = shown(fields[name], redactor)
        if isinstance(value, Spec):
            fields["command"] = [redactor.known(word) for word in redact_command(value.command)]
        elif isinstance(value, LogEntry):
            fields["data"] = redactor.value(value.data)
        elif isinstance(value, Noted):
            fields["data"] = [(key, shown(data, redactor) if isinstance(data, str) else data) for key, data in value.data]
        return fields

    return shown_fields_of


def shown(text: str, redactor: Redactor = REDACTOR) -> str:
    return _shown(text, redactor, redactor.lessons)


@lru_cache(maxsize=2048)  # most words come again and again
def _shown(text: str, redactor: Redactor, _lessons: int) -> str:
    return redactor.text(text)


def is_same(then: Any, now: Any) -> bool:
    """Say whether the recorded value is today's, as far as the recording shows it."""
    if then == now or not (isinstance(then, str) and isinstance(now, str)):
        return bool(then == now)
    first, *rest = then.split(MARK)
    if not rest or not now.startswith(first):
        return False
    *middle, last = rest
    at = len(first)
    for part in middle:
        at = now.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return now.endswith(last) and len(now) - len(last) >= at
