"""The exit log: one line for every death, in logfmt, for people with grep and for tools that follow files.

    ts=2026-11-16T06:49:11.204Z ev=session-exit death=d-s1-1 session=alpha … cause=crash … why="the agent exited with 1"

An empty value, or one with special characters, stands in quotes with JSON's escapes; an unknown one is empty after `=`.
If the disk refuses a line, it waits for the next death.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path

from vigil.core.model.death import Cause, Death
from vigil.kernel.theirs import open_theirs, read_end
from vigil.moments import rfc3339

LOG_BYTES = 1 << 20
READ_BYTES = 8 << 20  # of a log that could not be turned over for long
ROTATED = 5
WAITING = 1000  # lines that wait until the disk takes them again
VALUE_CHARS = 300
BARE = re.compile(r"[A-Za-z0-9_./:@%+-]+")
FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"=]*)(?: |$)')
Redact = Callable[[str], str]


def line_of(death: Death, redact: Redact = str) -> str:
    """Return the line of a death, without its newline."""
    intent = death.intent
    fields: dict[str, str | None] = {
        "ts": _moment(death.at),
        "ev": "server-exit" if death.cause is Cause.SERVER_DIED else "session-exit",
        "death": death.id,
        "session": death.session,
        "launch": death.launch_id,
        "cause": death.cause.value,
        "confidence": death.confidence.value,
        "exit_code": None if death.exit_code is None else str(death.exit_code),
        "signal": None if death.signal is None else str(death.signal),
        "charged": "true" if death.charged else "false",
        "observed_by": death.observed_by,
        "uptime_s": None if death.uptime_s is None else f"{death.uptime_s:.3f}",
        "intent": None if intent is None else intent.verb,
        "actor": None if intent is None else redact(intent.actor),
        "reason": None if intent is None else redact(intent.reason),
        "why": redact(death.evidence[0].text) if death.evidence else None,
    }
    return " ".join(f"{name}={_quote(value)}" for name, value in fields.items())


def _moment(at: float) -> str | None:
    try:
        return rfc3339(at)
    except (ValueError, OverflowError, OSError):  # a clock beyond the calendar costs the moment, not the line
        return None


def _quote(value: str | None) -> str:
    if value is None:
        return ""
    value = value[:VALUE_CHARS]
    if BARE.fullmatch(value):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    # JSON leaves some characters that terminals and line readers obey: C1 controls, line separators, bidi controls, surrogates.
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in quoted)


def parse(line: str) -> dict[str, str | None]:
    """Return the fields of a line; ValueError if it is not a complete line of this log."""
    line = line.removesuffix("\n")
    fields: dict[str, str | None] = {}
    at = 0
    while at < len(line):
        found = FIELD.match(line, at)
        if found is None:
            raise ValueError(f"no field of a log line at character {at}")
        name, value = found.groups()
        fields[name] = json.loads(value) if value.startswith('"') else value or None
        at = found.end()
    if "why" not in fields:
        raise ValueError("the line has no end")
    return fields


class ExitLog:
    """The log file and its older turns `.1` to `.5`; one process writes it, any number read it."""

    def __init__(self, path: Path, most_bytes: int = LOG_BYTES) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._waiting: deque[bytes] = deque(maxlen=WAITING)
        self._ends_whole = False  # its last line is complete; a crash or a full disk may have left half a line
        self.refused: str | None = None  # why the disk refused the last line; waiting lines come with the next

    @property
    def waiting(self) -> int:
        """How many lines are not in the file yet."""
        return len(self._waiting)

    def append(self, death: Death, redact: Redact = str) -> None:
        """Add the line of a death; a refused one waits, and is tried again with the next."""
        self._waiting.append(line_of(death, redact).encode("utf-8") + b"\n")
        self.write_again()

    def write_again(self) -> None:
        """Add the lines that wait, as far as the disk takes them."""
        try:
            while self._waiting:
                self._write(self._waiting[0])
                self._waiting.popleft()
            self.refused = None
        except OSError as error:
            self._ends_whole = False
            self.refused = error.strerror or str(error)

    def logged_ids(self) -> set[str]:
        """Return which deaths have their line, in the file or its newest turn."""
        found: set[str] = set()
        for path in (self._path, self._turn(1)):
            try:
                text = read_end(path, READ_BYTES).data.decode("utf-8", "replace")
            except OSError:
                continue
            for line in text.split("\n")[:-1]:  # an incomplete last line does not count
                try:
                    found.add(parse(line).get("death") or "")
                except ValueError:
                    continue
        return found - {""}

    def _write(self, line: bytes) -> None:
        fd = self._open()
        try:
            size = os.fstat(fd).st_size
            if size and size + len(line) > self._most_bytes:
                os.close(fd)
                fd = -1
                self._rotate(len(line))
                fd = self._open()
                size = os.fstat(fd).st_size
            torn = not self._ends_whole and size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            _append(fd, size, b"\n" + line if torn else line)
            self._ends_whole = True
        finally:
            if fd >= 0:
                os.close(fd)

    def _open(self) -> int:
        return open_theirs(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)[0]

    def _rotate(self, coming_bytes: int) -> None:
        """Rotate the files, unless another process is rotating or just has."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(self._path).st_size + coming_bytes <= self._most_bytes:
                return
            for number in range(ROTATED - 1, 0, -1):
                if self._turn(number).exists():
                    os.replace(self._turn(number), self._turn(number + 1))
            os.replace(self._path, self._turn(1))
        except (BlockingIOError, FileNotFoundError):
            pass
        finally:
            os.close(folder)

    def _turn(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _append(fd: int, size: int, data: bytes) -> None:
    """Write in one call; take back a write that fits only in part."""
    written = os.write(fd, data)
    if written == len(data):
        return
    if os.fstat(fd).st_size == size + written:  # no other process has written since
        os.ftruncate(fd, size)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
