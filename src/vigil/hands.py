"""Hands: threads for what may hang. A call that hangs is given up after its deadline, and delays no exit.

There is a bounded number of threads, hung ones included; when all are busy the next call waits in line. Calls about the same
thing go one after the other, and none is begun while one of them hangs: it takes one thread and no more."""

from __future__ import annotations

import errno
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
KEPT = 2  # threads that wait for the next call; more than these end
Settle = Callable[[Any, Exception | None], None]


class Hangs(TimeoutError):
    """A call did not come back in time; or `earlier` ones have not, and no thread is free."""

    def __init__(self, within_s: float, earlier: int = 0) -> None:
        words = f"{earlier} earlier calls have not come back" if earlier > 1 else "an earlier call has not come back"
        super().__init__(errno.ETIMEDOUT, words if earlier else f"no answer in {within_s:g} s")
        self.earlier = earlier

    def __str__(self) -> str:
        return str(self.strerror)


class Job:
    """One call: in line, under way, given up or done."""

    __slots__ = ("about", "is_done", "is_given_up", "settle", "work")

    def __init__(self, work: Callable[[], Any], settle: Settle, about: str = "") -> None:
        self.work = work
        self.settle = settle
        self.about = about
        self.is_given_up = False
        self.is_done = False


class Hands:
    """At most `most` threads; hung ones keep no process from ending. A `ready` one has begun: no host can refuse it later."""

    def __init__(self, name: str, most: int = 1, ready: bool = False) -> None:
        self.hung = 0  # given up, and not back yet
        self._name = name
        self._most = most
        self._changed = threading.Condition()
        self._line: deque[Job] = deque()
        self._under_way: set[str] = set()  # what calls in threads are about, hung ones included
        self._hung_about: set[str] = set()
        self._threads = 0
        self._idle = 0
        self._closed = False
        if ready:
            self.begin_thread()

    def begin_thread(self) -> None:
        """Have a thread from now on: a host that has no more later cannot refuse it."""
        with self._changed:
            if not self._threads:
                self._add_thread()

    def _add_thread(self) -> None:
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()  # it waits for the lock
        except RuntimeError:
            if not self._threads:
                raise  # else one of them takes the call later
        else:
            self._threads += 1

    def begin(self, work: Callable[[], T], settle: Settle, about: str = "") -> Job:
        """Begin a call; `settle` hears in its thread what it returned or raised, however late."""
        job = Job(work, settle, about)
        with self._changed:
            if len(self._line) >= self._idle and self._threads < self._most:
                self._add_thread()
            self._line.append(job)
            self._changed.notify()
        return job

    def give_up(self, job: Job) -> bool:
        """Stop waiting for a call; say whether it was still to come. One in line is not begun."""
        with self._changed:
            if job.is_done:
                return False
            if job in self._line:
                self._line.remove(job)
            elif not job.is_given_up:
                job.is_given_up = True
                self.hung += 1
                self._hung_about.add(job.about)
            return True

    def check(self, within_s: float, about: str = "") -> None:
        """Raise Hangs if every thread hangs, or a call about the same."""
        if about and about in self._hung_about:
            raise Hangs(within_s, 1)
        if self.hung >= self._most:
            raise Hangs(within_s, self.hung)

    def call(self, work: Callable[[], T], within_s: float, about: str = "") -> T:
        """Return what a call returns; raise what it raises, or Hangs. For threads, not for the loop."""
        self.check(within_s, about)
        settled = threading.Event()
        came: list[tuple[Any, Exception | None]] = []

        def settle(result: Any, error: Exception | None) -> None:
            came.append((result, error))
            settled.set()

        job = self.begin(work, settle, about)
        if not settled.wait(within_s) and self.give_up(job):
            raise Hangs(within_s)
        settled.wait()
        result, error = came[0]
        if error is not None:
            raise error
        found: T = result
        return found

    def close(self) -> None:
        """Do what is in line, then end; the caller does not wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        with self._changed:
            self._idle += 1  # until it takes the call it was begun for
        while (job := self._next()) is not None:
            result, error = None, None
            try:
                result = job.work()
            except Exception as raised:
                error = raised
            with self._changed:
                job.is_done = True
                if job.is_given_up:
                    self.hung -= 1
                    self._hung_about.discard(job.about)
                self._under_way.discard(job.about)
                self._idle += 1  # before it is told: its hearer may come with the next call
            job.settle(result, error)
            del job, result, error  # an idle thread keeps nothing alive

    def _next(self) -> Job | None:
        """Return the next call that may begin; None if this thread is to end."""
        with self._changed:
            while (job := self._first()) is None:
                if self._closed or self._idle > KEPT:
                    self._threads -= 1
                    self._idle -= 1
                    return None
                self._changed.wait()
            self._idle -= 1
            self._line.remove(job)
            if job.about:
                self._under_way.add(job.about)
            return job

    def _first(self) -> Job | None:
        return next((job for job in self._line if job.about not in self._under_way), None)
