"""Workers: a thread and a queue for each route, so that a dead route never holds up another (P6).

A worker gathers for a moment before it delivers: a storm is one summary, not a hundred notices (core/rules/storm.py)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from vigil.core.rules.escalation import Due
from vigil.core.rules.storm import gathered_at, together
from vigil.notify.contract import WHY_CHARACTERS, Delivery, Route
from vigil.notify.message import message_of, summary_of
from vigil.text import one_line

QUEUE_NOTICES = 10_000
Prepare = Callable[[list[Due]], tuple[list[Due], bytes]]


def prepared(dues: list[Due]) -> tuple[list[Due], bytes]:
    """Return all of them, and what is said of one notice, or of many at once; without details."""
    return dues, message_of(dues[0]) if len(dues) == 1 else summary_of(dues)


class Workers:
    """Takes notices for all routes and reports what became of each, from any thread.

    `told` must not raise and must not wait. `prepare` is asked before an attempt, in the route's own thread: it takes its time
    to write down what is about to be sent, and returns what still is to be, and what is said of it. Of a notice that still
    waits when the workers are closed nothing is told: it is still due."""

    def __init__(self, told: Callable[[Due, Delivery], None], prepare: Prepare = prepared) -> None:
        self._told = told
        self._prepare = prepare
        self._lock = threading.Lock()
        self._routes: dict[str, Route] = {}
        self._workers: dict[str, _Worker] = {}
        self._retired: list[_Worker] = []  # may still have a notice in hand
        self._closed = False

    def use(self, routes: Mapping[str, Route]) -> None:
        """Deliver by these routes from now on; notices that wait for a changed route move to its successor."""
        homeless: list[Due] = []
        with self._lock:
            self._routes = dict(routes)
            self._retired = [worker for worker in self._retired if worker.thread.is_alive()]
            for name, worker in list(self._workers.items()):
                if self._routes.get(name) != worker.route:
                    homeless += worker.retire()
                    self._retired.append(self._workers.pop(name))
            for name in self._routes:
                self._begin(name)  # now: a host that has no more threads later cannot refuse one
        for due in homeless:
            self.hand(due)

    def hand(self, due: Due) -> None:
        """Take a notice, or report it as failed; returns at once and never raises."""
        with self._lock:
            if self._closed:
                return
            failed = self._take(due)
        if failed is not None:
            self._tell(due, failed)

    def close(self, within_s: float) -> None:
        """Take no more and work off what waits; give up what is not done in time."""
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

    def waiting(self) -> dict[str, int]:
        """Return how many notices wait for each working route."""
        with self._lock:
            return {name: len(worker) for name, worker in self._workers.items()}

    def _take(self, due: Due) -> Delivery | None:
        """Put a notice into its route's queue, or say why not."""
        if due.route not in self._routes:
            return Delivery(False, f"there is no route {due.route}", permanent=True)
        worker = self._begin(due.route)
        if isinstance(worker, Delivery):
            return worker
        if not worker.put(due):
            return Delivery(False, f"{QUEUE_NOTICES} notices wait for {due.route} already")
        return None

    def _begin(self, name: str) -> _Worker | Delivery:
        """Return a route's worker, begun if it was not, or why it cannot begin."""
        worker = self._workers.get(name)
        if worker is None:
            worker = _Worker(name, self._routes[name], self._lock, self._deliver)
            try:
                worker.thread.start()
            except RuntimeError as error:
                return Delivery(False, str(error))
            self._workers[name] = worker
        return worker

    def _deliver(self, route: Route, dues: list[Due]) -> None:
        """Deliver gathered notices in one piece, in the route's thread, and report each."""
        try:
            dues, body = self._prepare(dues)
            if not dues:
                return
            delivery = route.deliver(body, _took_before(dues))
        except BaseException as error:  # also SystemExit of a library: it would end the route's thread without a word
            delivery = Delivery(False, one_line(f"{type(error).__name__}: {error}")[:WHY_CHARACTERS])
        for due in dues:
            self._tell(due, delivery)

    def _tell(self, due: Due, delivery: Delivery) -> None:
        try:
            self._told(due, delivery)
        except Exception:  # the listener is gone: the notice stays due, and the next one must not wait for it
            pass


def _took_before(dues: Sequence[Due]) -> frozenset[str]:
    """Return the receivers of a route that have all these notices already."""
    return frozenset.intersection(*(frozenset(due.before.took if due.before else ()) for due in dues))


class _Worker:
    """One route at work. All but its thread's own work happens under the shared lock."""

    def __init__(self, name: str, route: Route, lock: threading.Lock, deliver: Callable[[Route, list[Due]], None]) -> None:
        self.route = route
        self.thread = threading.Thread(target=self._run, name=f"route {name}", daemon=True)
        self._deliver = deliver
        self._changed = threading.Condition(lock)
        self._waiting: deque[tuple[float, Due]] = deque()  # with the moments they came
        self._finishing = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, due: Due) -> bool:
        """Add to the queue, unless it is full."""
        if len(self._waiting) >= QUEUE_NOTICES:
            return False
        self._waiting.append((time.monotonic(), due))
        self._changed.notify()
        return True

    def finish(self) -> None:
        """End once the queue is empty."""
        self._finishing = True
        self._changed.notify()

    def retire(self) -> list[Due]:
        """End after the delivery in hand, and return what was waiting."""
        left = [due for _, due in self._waiting]
        self._waiting.clear()
        self.finish()
        return left

    def _run(self) -> None:
        while dues := self._next():
            self._deliver(self.route, dues)

    def _next(self) -> list[Due]:
        """Wait, then return the next notice, or a whole storm; empty when it is time to end."""
        with self._changed:
            while not self._waiting and not self._finishing:
                self._changed.wait()
            while self._waiting and not self._finishing and (left_s := self._gather_until() - time.monotonic()) > 0:
                self._changed.wait(left_s)
            return [self._waiting.popleft()[1] for _ in range(together(len(self._waiting)))]

    def _gather_until(self) -> float:
        return gathered_at(self._waiting[0][0], self._waiting[-1][0], len(self._waiting))
