"""Reading a recording: its first line at once, the rest on request. A torn last line ends it, and is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vigil.codec import NotUnderstood, read
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.core.model.upgrade import with_nested_sessions
from vigil.errors import UsageError
from vigil.kernel.theirs import open_regular
from vigil.recording.lines import FORMAT, MARK

LINE_BYTES = 16 << 20  # the first holds all sessions


class BadRecording(UsageError):
    """The file is no recording, or none that this version reads."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as recorded, not yet decoded."""

    number: int
    now: float
    event: Any
    effects: list[Any] | None
    raised: str | None


class Recording:
    """One recording: the machine's first state, then its entries, then how it ended."""

    def __init__(self, path: Path, first: dict[str, Any]) -> None:
        first = with_nested_sessions(first)
        self.path = path
        self.version = str(first.get("version", "unknown"))
        self.at = _number(path, 1, first.get("at"))
        self.unknown: list[str] = []  # fields of its first state that today's core does not know
        self.torn = False
        self.ended: str | None = None  # why it ended; None where the daemon was killed
        try:
            self.sessions: tuple[Session, ...] = read(tuple[Session, ...], first.get("sessions"), "sessions", self.unknown)
            self.incidents: tuple[Incident, ...] = read(tuple[Incident, ...], first.get("incidents"), "incidents", self.unknown)
            self.roles: tuple[Role, ...] = read(tuple[Role, ...], first.get("roles", []), "roles", self.unknown)
        except NotUnderstood as problem:
            raise BadRecording(f"{path}: what it began with cannot be read today: {problem}") from None

    def entries(self) -> Iterator[Entry]:
        for line_number, value in self._values():
            if "ended" in value:
                self.ended = str(value["ended"])
                return
            yield _entry(self.path, line_number, value)

    def _values(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with _opened(self.path) as file:
            for line_number, line in enumerate(iter(lambda: file.readline(LINE_BYTES), b""), 1):
                if line_number == 1:
                    continue
                if len(line) == LINE_BYTES:
                    raise BadRecording(f"{self.path}: line {line_number} is longer than {LINE_BYTES >> 20} MiB")
                if not line.endswith(b"\n"):
                    self.torn = True  # only the last one can be so
                    return
                yield line_number, _value(self.path, line_number, line)


def _opened(path: Path) -> BinaryIO:
    return open(open_regular(path)[0], "rb")


def open_recording(path: Path) -> Recording:
    """Return a recording with its first line read; BadRecording says why it is none."""
    try:
        with _opened(path) as file:
            line = file.readline(LINE_BYTES)
    except OSError as error:
        raise BadRecording(f"{path}: {error.strerror}") from None
    if not line:
        raise BadRecording(f"{path} is empty: no recording, or one that has only just begun")
    try:
        first = json.loads(line)
        found = first[MARK]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadRecording(f"{path} is no recording: vigil daemon start --record FILE makes one") from None
    if not isinstance(found, int) or found > FORMAT:
        version = first.get("version", "unknown")
        raise BadRecording(
            f"{path} is of a newer format ({found}) than this vigil reads ({FORMAT}): it was recorded by vigil {version}"
        )
    return Recording(path, first)


def _entry(path: Path, line_number: int, value: dict[str, Any]) -> Entry:
    effects, raised = value.get("effects"), value.get("raised")
    if "event" not in value or not (isinstance(effects, list) or isinstance(raised, str)):
        raise BadRecording(f"{path}: line {line_number} is damaged: it holds no event with its effects")
    now, event = _number(path, line_number, value.get("now")), _upgraded(value["event"])
    return Entry(line_number - 1, now, event, list(map(_upgraded, effects)) if isinstance(effects, list) else None, raised)


def _upgraded(tagged: Any) -> Any:
    """Return an event or effect under its name, as today's core has its sessions."""
    return {kind: with_nested_sessions(body) for kind, body in tagged.items()} if isinstance(tagged, dict) else tagged


def _value(path: Path, line_number: int, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadRecording(f"{path}: line {line_number} is damaged: it is no JSON table")
    return value


def _number(path: Path, line_number: int, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadRecording(f"{path}: line {line_number} is damaged: it does not say when")
    return value
