"""Alarms: the way from an incident to a human, apart from loop, probes and store (P6).

The heartbeat's thread decides when, the escalator what, a worker of its own for each route carries it there; what became of it
comes back as an event and is recorded then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from vigil.command import end_running
from vigil.config.values import Config
from vigil.core.escalate import Due
from vigil.core.events import Condition, Event, Notified
from vigil.core.incidents import host_incident
from vigil.core.model import Incident, IncidentKind, Notice
from vigil.daemon.clock import Clock
from vigil.daemon.escalator import Escalator
from vigil.daemon.heartbeat import Heartbeat
from vigil.daemon.log import log
from vigil.notify import Delivery, ExecRoute, Workers

CLOSE_S = 2.0


class Alarms:
    """Everything that tells humans."""

    def __init__(self, clock: Clock, feed: Callable[[Event], None]) -> None:
        self._clock = clock
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        self._causes: dict[IncidentKind, set[str]] = {}
        self._open: dict[str, str] = {}  # the incidents that are open: their ids by their keys
        self.heartbeat = Heartbeat()
        self.heartbeat.on_blocked = self._blocked
        self.heartbeat.on_unblocked = self._unblocked
        self._workers = Workers(self._told)
        self._escalator = Escalator(self.heartbeat, clock.now, self._workers.hand)

    def start(self) -> None:
        """Start the clock apart."""
        self.heartbeat.start()

    def use(self, config: Config) -> None:
        """Tell humans by these routes and ladders from now on."""
        self._workers.use({name: ExecRoute(route.exec) for name, route in config.routes.items() if route.exec})
        self._escalator.use(config.ladders)

    def tell(self, incident: Incident) -> None:
        """Take an incident in its newest version."""
        if incident.resolved_at is None:
            self._open[incident.key] = incident.id
        elif self._open.get(incident.key) == incident.id:
            del self._open[incident.key]
        self._escalator.tell(incident)

    def report(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Open an incident of the host at once, recorded after: whoever says so may not be able to wait for the store."""
        self._causes.setdefault(kind, set()).add(cause)
        incident = host_incident(kind, why, self._clock.now())
        if incident.key not in self._open:  # else the one that is open takes it in
            self.tell(incident)
        self._later(Condition(kind, True, why, incident.opened_at))

    def over(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Resolve an incident of the host, unless it has another cause that lasts."""
        self._causes.setdefault(kind, set()).discard(cause)
        if not self._causes[kind]:
            self._later(Condition(kind, False, why, self._clock.now()))

    def close(self) -> None:
        """Stop; what is still due will be so for the next daemon."""
        self.heartbeat.close()
        self._workers.close(CLOSE_S)
        end_running()  # a notifier that hangs does not outlive us
        self._workers.close(CLOSE_S)

    def _blocked(self, so_far_s: float, where: str) -> None:
        self.report(IncidentKind.LATE_DAEMON, f"the event loop has stood still for {so_far_s:.1f} s", "loop")
        words = {"so_far_s": round(so_far_s, 1), "where": where.replace("\n", " < ")}
        # Not here: the log is a file on a disk that may be what hangs, and this is the clock's own thread.
        threading.Thread(target=log.error, args=("the event loop is blocked",), kwargs=words, daemon=True).start()

    def _unblocked(self, lasted_s: float) -> None:
        self.over(IncidentKind.LATE_DAEMON, f"the event loop runs again; it stood still for {lasted_s:.1f} s", "loop")

    def _told(self, due: Due, delivery: Delivery) -> None:
        """Write down what became of a notice; called from a worker's thread."""
        state = "sent" if delivery.ok else "failed"
        notice = Notice(due.notice_id, due.route, state, self._clock.now(), delivery.why)
        self._later(Notified(due.incident.id, notice))

    def _later(self, event: Event) -> None:
        try:
            self._loop.call_soon_threadsafe(self._feed, event)
        except RuntimeError:
            pass  # the loop is closed: nothing can be recorded any more, and the notice is due again at the next start
