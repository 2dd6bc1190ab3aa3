"""Workers: a thread and a queue for each route, so that a dead route never holds up another (P6)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from vigil.core.escalate import Due
from vigil.notify.contract import WHY_CHARACTERS, Delivery, Route
from vigil.notify.message import message_of
from vigil.text import one_line

QUEUE_NOTICES = 10_000


class Workers:
    """Takes notices for all routes and tells what became of each, from whichever thread knows.

    `told` must not raise and must not wait. Of a notice that still waits when the workers are closed nothing is told: it is
    still due.
    """

    def __init__(self, told: Callable[[Due, Delivery], None]) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._routes: dict[str, Route] = {}
        self._workers: dict[str, _Worker] = {}
        self._retired: list[_Worker] = []  # may still have a notice in hand
        self._closed = False

    def use(self, routes: Mapping[str, Route]) -> None:
        """Deliver by these routes from now on; what waits for one that changed goes to its successor."""
        homeless: list[Due] = []
        with self._lock:
            self._routes = dict(routes)
            self._retired = [worker for worker in self._retired if worker.thread.is_alive()]
            for name, worker in list(self._workers.items()):
                if self._routes.get(name) != worker.route:
                    homeless += worker.retire()
                    self._retired.append(self._workers.pop(name))
        for due in homeless:
            self.hand(due)

    def hand(self, due: Due) -> None:
        """Take a notice; returns at once and never raises. What cannot be taken is told as failed."""
        with self._lock:
            if self._closed:
                return
            why = self._take(due)
        if why is not None:
            self._tell(due, Delivery(False, why))

    def close(self, within_s: float) -> None:
        """Take nothing more and work off what waits; what is not done in time is given up."""
        until = time.monotonic() + within_s
        with self._lock:
            self._closed = True
            workers = [*self._workers.values(), *self._retired]
            for worker in workers:
                worker.finish()
        for worker in workers:
            worker.thread.join(max(0.0, until - time.monotonic()))
        with self._lock:
            for worker in workers:
                worker.retire()

    def _take(self, due: Due) -> str | None:
        """Put a notice into its route's queue, or say why not."""
        route = self._routes.get(due.route)
        if route is None:
            return f"there is no route {due.route}"
        worker = self._workers.get(due.route)
        if worker is None:
            worker = _Worker(due.route, route, self._lock, self._tell)
            try:
                worker.thread.start()
            except RuntimeError as error:
                return str(error)
            self._workers[due.route] = worker
        if not worker.put(due):
            return f"{QUEUE_NOTICES} notices wait for {due.route} already"
        return None

    def _tell(self, due: Due, delivery: Delivery) -> None:
        try:
            self._told(due, delivery)
        except Exception:  # whoever listened is gone: the notice is still due, and the next one must not wait for it
            pass


class _Worker:
    """One route at work. All but its thread's own doing happens under the lock of all."""

    def __init__(self, name: str, route: Route, lock: threading.Lock, tell: Callable[[Due, Delivery], None]) -> None:
        self.route = route
        self.thread = threading.Thread(target=self._run, name=f"route {name}", daemon=True)
        self._tell = tell
        self._changed = threading.Condition(lock)
        self._waiting: deque[Due] = deque()
        self._finishing = False

    def put(self, due: Due) -> bool:
        """Add to the queue, unless it is full."""
        if len(self._waiting) >= QUEUE_NOTICES:
            return False
        self._waiting.append(due)
        self._changed.notify()
        return True

    def finish(self) -> None:
        """End once nothing waits."""
        self._finishing = True
        self._changed.notify()

    def retire(self) -> list[Due]:
        """End after what is being delivered, and return what was waiting."""
        left = list(self._waiting)
        self._waiting.clear()
        self.finish()
        return left

    def _run(self) -> None:
        while (due := self._next()) is not None:
            self._tell(due, _deliver(self.route, due))

    def _next(self) -> Due | None:
        with self._changed:
            while not self._waiting and not self._finishing:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting else None


def _deliver(route: Route, due: Due) -> Delivery:
    try:
        return route.deliver(message_of(due))
    except BaseException as error:  # also SystemExit of a library: it would end the route's thread without a word
        return Delivery(False, one_line(f"{type(error).__name__}: {error}")[:WHY_CHARACTERS])
