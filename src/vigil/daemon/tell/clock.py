"""The clock apart: a thread that shares nothing with the event loop, probes, the store's disk or notifiers (P6).

It calls what is due, and sees when the loop stops beating. Its calls must be quick; their planner answers for that."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType

from vigil.daemon.base.lateness import Beats
from vigil.daemon.base.log import log

TICK_S = 1.0
BLOCKED_S = 4.0  # on a busy machine a beat is late by a second or two
CLOSE_S = 2.0
STACK_LINES = 12
FAILURES = 100


@dataclass(frozen=True, slots=True)
class Planned:
    """A call planned on the clock apart, its moment, and when it starts being late.

    One for a moment long past is not late by that."""

    key: str
    due: float
    late_from: float
    call: Callable[[], None]


class Heartbeat:
    """The clock apart: calls when due, whatever the loop does, and sees it stand still."""

    def __init__(
        self,
        on_blocked: Callable[[float, str], None] = lambda _so_far_s, _where: None,
        on_unblocked: Callable[[float], None] = lambda _lasted_s: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.monotonic = monotonic
        self._on_blocked = on_blocked
        self._on_unblocked = on_unblocked
        self._changed = threading.Condition()
        self._planned: dict[str, Planned] = {}
        self._closed = False
        self._beats = Beats()
        self._beat: tuple[float, int] | None = None  # the loop's last beat, and its thread: one value, set at once
        self._blocked_since: float | None = None
        self._failures: SimpleQueue[tuple[str, BaseException] | None] = SimpleQueue()
        # The log's disk may hang: another thread writes what failed, and the clock goes on.
        self._threads = [
            threading.Thread(target=self._run, name="heartbeat", daemon=True),
            threading.Thread(target=self._write_failures, name="heartbeat-log", daemon=True),
        ]

    def start(self) -> None:
        """Start the clock apart; calls planned before count too."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the clock apart; wait a bounded time for a call under way."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._failures.put(None)
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(CLOSE_S)

    def at(self, key: str, due: float, call: Callable[[], None]) -> None:
        """Plan a call on the clock apart, by monotonic time; it replaces its key's last."""
        with self._changed:
            self._planned[key] = Planned(key, due, max(due, self.monotonic()), call)
            self._changed.notify()

    def cancel(self, key: str) -> None:
        """Drop a call planned on the clock apart; one under way goes on."""
        with self._changed:
            self._planned.pop(key, None)

    def beat(self) -> None:
        """Tell the clock apart that the loop runs, once a second, in the loop's thread."""
        self._beat = (self.monotonic(), threading.get_ident())

    def lateness(self) -> dict[str, float]:
        """Return how late the clock apart began its calls: now, p99, max in milliseconds."""
        with self._changed:
            return self._beats.summary()

    def _run(self) -> None:
        while not self._closed:
            planned = self._wait()
            if planned is not None:
                self._carry_out(planned.key, planned.call)
            self._look_at_the_loop()

    def _wait(self) -> Planned | None:
        """Return the clock's next call once it is due, or None after a tick."""
        with self._changed:
            if self._closed:
                return None
            now = self.monotonic()
            planned = min(self._planned.values(), key=lambda one: one.due, default=None)
            if planned is None or planned.due > now:
                self._changed.wait(TICK_S if planned is None else min(TICK_S, planned.due - now))
                return None
            self._beats.note(now - planned.late_from)
            return self._planned.pop(planned.key)

    def _carry_out(self, key: str, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # also a cancelled future or an exit: only `close` ends this thread
            if self._failures.qsize() < FAILURES:  # a log that hangs costs lines, not memory
                self._failures.put((key, error))

    def _write_failures(self) -> None:
        while (failure := self._failures.get()) is not None:
            key, error = failure
            log.error("heartbeat call failed", key=key, why=repr(error), exc_info=error)

    def _look_at_the_loop(self) -> None:
        now = self.monotonic()  # before the beat is read: a pause of this thread between the two does not block the loop
        if self._beat is None:
            return
        beat_at, thread_id = self._beat
        if self._blocked_since is not None and beat_at > self._blocked_since:
            lasted_s = beat_at - self._blocked_since
            self._blocked_since = None
            self._carry_out("unblocked", lambda: self._on_unblocked(lasted_s))
        so_far_s = now - beat_at
        if self._blocked_since is None and so_far_s > BLOCKED_S:
            self._blocked_since = beat_at
            self._carry_out("blocked", lambda: self._on_blocked(so_far_s, where_is(thread_id)))


def where_is(thread_id: int) -> str:
    """Return the innermost calls of a thread that the clock apart sees blocked."""
    frame: FrameType | None = sys._current_frames().get(thread_id)
    lines: list[str] = []
    while frame is not None and len(lines) < STACK_LINES:
        file = "/".join(frame.f_code.co_filename.split("/")[-4:])
        lines.insert(0, f"{file}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return "\n".join(lines)
