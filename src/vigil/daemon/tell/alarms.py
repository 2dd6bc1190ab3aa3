"""Alarms: the way from an incident to a human, apart from loop, probes and store (P6).

The heartbeat's thread decides when, the escalator what, a worker of its own for each route carries it there; that a notice is
about to be sent, and what became of it, comes back as an event and is recorded: the first before it is sent, unless the store
does not answer.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from vigil.command import end_running
from vigil.config.values import Config, RouteConfig
from vigil.core.events import Condition, Configured, Event, Notified, Reached
from vigil.core.model.incident import Incident, IncidentKind, Notice, NoticeState, Telling
from vigil.core.rules.escalation import Due, is_wanted
from vigil.core.rules.incident import host_incident, opened
from vigil.core.rules.notice import RoutePatience, begun, fate_of
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.log import log
from vigil.daemon.tell.clock import Heartbeat
from vigil.daemon.tell.escalator import Escalator
from vigil.errors import UsageError, VigilError
from vigil.notify import AppriseRoute, Delivery, ExecRoute, Route, WebhookRoute, Workers, message_of, summary_of, trial_of

CLOSE_S = 2.0
STEADY_S = 2.0  # so long a host's trouble is over before that is believed: one that mends itself at once is told all the same
RECORD_S = 0.25  # with what its worker gathers half a second: if the store takes longer it is sent first, then recorded (P6)


class Alarms:
    """Everything that tells humans."""

    def __init__(
        self,
        clock: Clock,
        feed: Callable[[Event], None],
        done: Callable[[Event], Coroutine[Any, Any, None]],
        details: Callable[[Incident], Mapping[str, Any]] = lambda _incident: {},
    ) -> None:
        self._clock = clock
        self._feed = feed
        self._done = done
        self._details = details  # of an incident, for routes that may tell them; called in a route's thread
        self._loop = asyncio.get_running_loop()
        self._causes: dict[IncidentKind, set[str]] = {}
        self._last: dict[str, Incident] = {}  # of each key, the newest incident
        self._routes: Mapping[str, RouteConfig] = {}
        self._configured: Configured | None = None
        self.heartbeat = Heartbeat()
        self.heartbeat.on_blocked = self._blocked
        self.heartbeat.on_unblocked = self._unblocked
        self._workers = Workers(self._told, self._begin, self._compose)
        self._escalator = Escalator(self.heartbeat, clock.now, self._workers.hand)

    def start(self) -> None:
        """Start the clock apart."""
        self.heartbeat.start()

    def use(self, config: Config) -> None:
        """Tell humans by these routes and ladders from now on."""
        self._routes = config.routes
        self._workers.use({name: route_of(route) for name, route in config.routes.items()})
        self._escalator.use(Telling(config.ladders, config.quiet, tuple(config.routes)))
        configured = Configured(tuple(config.routes), config.reactions)
        if configured != self._configured:
            self._configured = configured
            self._feed(configured)

    def tell(self, incident: Incident) -> None:
        """Take an incident in its newest version."""
        last = self._last.get(incident.key)
        if last is None or last.id == incident.id or incident.opened_at >= last.opened_at:
            self._last[incident.key] = incident
        if incident.session_id is not None and incident.resolved_at is not None:
            self._last.pop(incident.key, None)  # only the host's own are asked for again
        self._escalator.tell(incident)

    def report(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Open an incident of the host at once, recorded after: whoever says so may not be able to wait for the store."""
        self._causes.setdefault(kind, set()).add(cause)
        self.heartbeat.cancel(_over_key(kind, cause))
        fresh = host_incident(kind, why, self._clock.now())
        last = self._last.get(fresh.key)
        if last is None or last.resolved_at is not None:  # else the one that is open takes it in
            self.tell(opened(fresh, last))
        self._later(Condition(kind, True, why, fresh.opened_at))

    def over(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Resolve an incident of the host, unless it has another cause that lasts."""
        self._causes.setdefault(kind, set()).discard(cause)
        if not self._causes[kind]:
            self._later(Condition(kind, False, why, self._clock.now()))

    def over_soon(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Resolve an incident of the host once its cause has been gone for a while."""
        over_at = self.heartbeat.monotonic() + STEADY_S
        self.heartbeat.at(_over_key(kind, cause), over_at, lambda: self.over(kind, why, cause))

    def stood_still(self, late_s: float) -> None:
        """Nothing of us ran for a while, not even the clock apart: we were stopped, or the machine is too busy for us."""
        if "loop" not in self._causes.get(IncidentKind.LATE_DAEMON, ()):  # else the clock apart ran, and has said so
            self.report(IncidentKind.LATE_DAEMON, f"the daemon stood still for {late_s:.1f} s", "still")
            self.over_soon(IncidentKind.LATE_DAEMON, f"the daemon runs again; it stood still for {late_s:.1f} s", "still")

    async def try_route(self, name: str) -> Delivery:
        """Send a test by a route, now, and say what became of it; one that arrives ends what is open of that route."""
        found = self._routes.get(name)
        if found is None:
            there = f"there are: {', '.join(self._routes)}" if self._routes else "none is configured"
            raise UsageError(f"there is no route {name}; {there}")
        route = route_of(found)
        delivery = await asyncio.to_thread(_deliver, route, trial_of(name, self._clock.now()))
        if delivery.ok:
            self._feed(Reached(name))
        return delivery

    def routes(self) -> list[dict[str, Any]]:
        """Return what routes there are, of what kind, and how many notices wait for each; no address is shown."""
        waiting = self._workers.waiting()
        return [{"name": name, "by": route.by, "waiting": waiting.get(name, 0)} for name, route in self._routes.items()]

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
        self.over_soon(IncidentKind.LATE_DAEMON, f"the event loop runs again; it stood still for {lasted_s:.1f} s", "loop")

    def _begin(self, dues: list[Due]) -> list[Due]:
        """Write down what is about to be sent, and return what still is to be; called in a route's thread."""
        wanted, events = [], []
        for due in dues:
            newest = self._escalator.newest(due.incident.id)
            notice = self._begun(due)
            if newest is not None and not is_wanted(due, newest):
                why = "it is over" if newest.resolved_at is not None else "it was acknowledged"
                notice = Notice(
                    due.notice_id,
                    due.route,
                    NoticeState.CANCELLED,
                    notice.at,
                    why,
                    due.event,
                    notice.attempts,
                    rung=due.rung,
                )
            else:
                wanted.append(due)
            events.append(Notified(due.incident.id, notice))
        self._record(events)
        return wanted

    def _record(self, events: Sequence[Event]) -> None:
        """Have events recorded in order, and wait until they are; not for long."""
        for event in events[:-1]:
            self._later(event)
        recording = self._done(events[-1])
        try:
            asyncio.run_coroutine_threadsafe(recording, self._loop).result(RECORD_S)
        except (TimeoutError, CancelledError, VigilError):
            pass  # it is sent first, and recorded after (P6)
        except RuntimeError:
            recording.close()  # the loop is closed, and so are we

    def _begun(self, due: Due) -> Notice:
        before = due.before or Notice(
            due.notice_id, due.route, NoticeState.SENDING, 0.0, event=due.event, attempts=0, rung=due.rung
        )
        return begun(before, self._clock.now())

    def _compose(self, dues: Sequence[Due]) -> bytes:
        route = self._routes.get(dues[0].route)
        detailed = route is not None and route.details
        if len(dues) > 1:
            return summary_of(dues, detailed)
        return message_of(dues[0], self._details(dues[0].incident) if detailed else None)

    def _told(self, due: Due, delivery: Delivery) -> None:
        """Write down what became of a notice; called from a worker's thread."""
        route = self._routes.get(due.route)
        patience = RoutePatience() if route is None else route.patience
        notice = fate_of(self._begun(due), delivery, patience, self._clock.now(), random.uniform(-1.0, 1.0))
        self._later(Notified(due.incident.id, notice))

    def _later(self, event: Event) -> None:
        try:
            self._loop.call_soon_threadsafe(self._feed, event)
        except RuntimeError:
            pass  # the loop is closed: nothing can be recorded any more, and the notice is due again at the next start


def _over_key(kind: IncidentKind, cause: str) -> str:
    return f"over {kind} {cause}"


def route_of(route: RouteConfig) -> Route:
    """Return the route that a configuration declares."""
    if route.exec:
        return ExecRoute(route.exec, route.deadline_s)
    if route.webhook is not None:
        return WebhookRoute(route.webhook, route.secret, route.deadline_s)
    assert route.url is not None
    return AppriseRoute(route.url, route.deadline_s)


def _deliver(route: Route, body: bytes) -> Delivery:
    try:
        return route.deliver(body)
    except Exception as error:
        return Delivery(False, f"{type(error).__name__}: {error}")
