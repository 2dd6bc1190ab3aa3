"""The recorder: a thread writes down what the machine was told and answered.

The daemon never waits for it: a disk that is full, fails or hangs ends the recording, which says so once."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from vigil import __version__
from vigil.core.effects import Effect, Persist
from vigil.core.events import Event
from vigil.core.machine import Machine
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.log import REDACTOR
from vigil.errors import VigilError
from vigil.recording import STOPPED, begin_line, end_line, entry_line, fault
from vigil.redact import Redactor
from vigil.text import decode

WAITING = 10_000  # events that may wait for the disk: some 30 MB
HANGS_S = 10  # seconds until a write counts as hung
CLOSE_S = 2.0
MOST_BYTES = 1 << 30  # about two days of 200 sessions
RESERVE_BYTES = 64 << 20  # the store needs the disk's last space
Line = Callable[[], str]
Handled = Callable[[float, Event, list[Effect] | str], None]  # when, what, and the machine's answer or error


class RecordingRefused(VigilError):
    """The file of a recording cannot be created; the message says why."""


def create(path: Path) -> int:
    """Create the file of a recording, 0600; refuse an existing one."""
    file, folder = shown(path), shown(path.parent)
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise RecordingRefused(f"{file} is there already and is not overwritten: name a new file, or remove it") from None
    except OSError as error:
        if not path.parent.is_dir():
            raise RecordingRefused(f"{folder} is not a folder: create it first, then record into it") from None
        raise RecordingRefused(f"cannot record into {file}: {error.strerror}") from None


def shown(path: Path) -> str:
    """Return a recording's path as text that every encoding takes."""
    return decode(os.fsencode(path))


class Recorder:
    """One recording; `on_ended` hears once, from any thread, that it ended before the daemon."""

    def __init__(
        self,
        path: Path,
        fd: int,
        on_ended: Callable[[dict[str, Any]], None] = lambda _ended: None,
        most_bytes: int = MOST_BYTES,
        redactor: Redactor = REDACTOR,
    ) -> None:
        self.path = path
        self._on_ended = on_ended
        self.lines = 0  # written so far, with the first
        self.bytes = 0
        self.ended: str | None = None
        self._fd = fd
        self._most_bytes = most_bytes
        self._redactor = redactor
        self._lines: SimpleQueue[Line | None] = SimpleQueue()
        self._writing = False
        self._stalled = (0, 0)  # the line of a second ago, and for how many seconds it is the last
        self._ending = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    @property
    def events(self) -> int:
        return max(0, self.lines - 1)

    def status(self) -> dict[str, str | int | None]:
        """Return the recording's file, its number of events, and why it ended, if so."""
        return {"file": shown(self.path), "events": self.events, "bytes": self.bytes, "ended": self.ended}

    def begin(self, at: float, sessions: Iterable[Session], incidents: Iterable[Incident], roles: Iterable[Role] = ()) -> None:
        """Begin the recording with the machine's first state."""
        given = tuple(sessions), tuple(incidents), tuple(roles)
        self._lines.put(lambda: begin_line(__version__, at, *given, redactor=self._redactor))
        self._thread.start()

    def handled(self, now: float, event: Event, answer: Iterable[Effect] | str) -> None:
        """Record an event with the machine's answer or error; returns at once."""
        if self.ended is not None:
            return
        taken = answer if isinstance(answer, str) else tuple(answer)  # frozen values: the thread may read them later
        self._lines.put(lambda: entry_line(now, event, taken, self._redactor))
        if self._lines.qsize() > WAITING:
            self._end(f"its disk does not keep up: {WAITING} events wait to be written")

    def check(self) -> None:
        """End a recording whose disk hangs; call once a second, as it counts calls."""
        line, seconds = self._stalled
        self._stalled = (self.lines, seconds + 1 if self._writing and line == self.lines else 0)
        if self._stalled[1] > HANGS_S:
            self._end(f"its disk has not answered for {HANGS_S} s")

    def close(self, why: str = STOPPED) -> None:
        """Write the rest of the recording and its end, for a bounded time."""
        if self.ended is None:
            self._lines.put(lambda: end_line(why))
        self._lines.put(None)
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        try:
            while (line := self._lines.get()) is not None and self.ended is None:
                self._write(line)
                self.lines += self.ended is None
        except OSError as error:
            self._end(f"its disk says: {error.strerror}")
        except Exception as error:  # a value that JSON cannot hold: our fault, and no reason to stop watching
            self._end(f"{type(error).__name__}: {error}")
        finally:
            os.close(self._fd)

    def _write(self, line: Line) -> None:
        data = memoryview(line().encode("ascii") + b"\n")
        if self.bytes + len(data) > self._most_bytes:
            self._give_up(f"it has reached {self._most_bytes >> 20} MB")
            return
        self._writing = True
        if _is_nearly_full(self._fd):
            self._give_up(f"less than {RESERVE_BYTES >> 20} MB are left on its disk")
            return
        self.bytes += len(data)
        while data:
            data = data[os.write(self._fd, data) :]
        self._writing = False

    def _give_up(self, why: str) -> None:
        """End the recording while its disk still takes a last line."""
        os.write(self._fd, end_line(why).encode("ascii") + b"\n")
        self._end(why)

    def _end(self, why: str) -> None:
        with self._ending:
            if self.ended is not None:
                return
            self.ended = why
        with contextlib.suppress(Empty):
            while True:
                self._lines.get_nowait()  # the thread is gone, and these hold whole sessions
        self._lines.put(None)
        self._on_ended({"file": shown(self.path), "events": self.events, "why": why})


class RecordedMachine:
    """The machine as the daemon asks it: here, so that a recording misses no question."""

    def __init__(self, machine: Machine, clock: Clock, on_handled: Handled | None = None) -> None:
        self.machine = machine
        self._clock = clock
        self._on_handled = on_handled

    def now(self) -> float:
        return self._clock.now()

    def ask(self, event: Event) -> tuple[list[Effect], dict[str, Session | None]]:
        """Ask the machine and have that recorded; return its effects, and the sessions it changed."""
        now = self._clock.now()
        try:
            effects = self.machine.handle(event, now)
        except Exception as error:
            self._note(now, event, fault(error))  # a recording is wanted most for what broke us
            raise
        self._note(now, event, effects)
        return effects, dict(self.machine.changed)

    def _note(self, now: float, event: Event, answer: list[Effect] | str) -> None:
        if self._on_handled is not None:
            self._on_handled(now, event, answer)

    def incidents(self) -> dict[str, Incident]:
        return dict(self.machine.incidents)

    def whole(self) -> Persist:
        """Return the recorded machine's whole state, for a database that replaced ours."""
        machine = self.machine
        sessions = tuple(machine.sessions.values())
        launches = tuple(session.launch for session in sessions if session.launch is not None)
        return Persist(sessions, launches, incidents=tuple(machine.incidents.values()), roles=tuple(machine.roles.values()))


def _is_nearly_full(fd: int) -> bool:
    found = os.fstatvfs(fd)
    return found.f_blocks > 0 and found.f_bavail * found.f_frsize < RESERVE_BYTES  # a pipe has no blocks
