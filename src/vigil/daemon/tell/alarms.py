"""Alarms: the way from an incident to a person, apart from loop, probes and store (P6).

The heartbeat says when, the escalator what, a route's worker sends. A notice is recorded first, unless the store is silent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vigil.command import end_running
from vigil.config.values import Config, RouteConfig
from vigil.core.effects import Tell
from vigil.core.events import Configured, Reached
from vigil.core.model.incident import Incident, Telling
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.inbox import Inbox
from vigil.daemon.tell.clock import Heartbeat
from vigil.daemon.tell.courier import Courier
from vigil.daemon.tell.escalator import Escalator
from vigil.daemon.tell.host_incidents import HostIncidents
from vigil.daemon.tell.known import KnownIncidents
from vigil.errors import UsageError
from vigil.notify import AppriseRoute, Delivery, ExecRoute, Route, WebhookRoute, Workers, trial_of
from vigil.threads import TRIALS, in_thread

CLOSE_S = 2.0


class Alarms:
    """Raises alarms: owns the parts that tell people, and the configured routes."""

    def __init__(self, clock: Clock, inbox: Inbox, details: Callable[[Incident], Mapping[str, Any]]) -> None:
        self._clock = clock
        self._inbox = inbox
        self._routes: Mapping[str, RouteConfig] = {}
        self._configured: Configured | None = None
        known = KnownIncidents()
        courier = Courier(clock, inbox, known, details, lambda name: self._routes.get(name))
        self._workers = Workers(courier.told, courier.prepare)
        self.heartbeat = Heartbeat(lambda *blocked: self.host.blocked(*blocked), lambda lasted_s: self.host.unblocked(lasted_s))
        self._escalator = Escalator(known, self.heartbeat, clock.now, self._workers.hand)
        self.host = HostIncidents(clock, inbox, self.heartbeat, self._escalator.tell)

    def use(self, config: Config) -> None:
        """Raise alarms by these routes and ladders from now on."""
        self._routes = config.routes
        self._workers.use({name: route_of(route) for name, route in config.routes.items()})
        self._escalator.use(Telling(config.ladders, config.quiet, tuple(config.routes)))
        configured = Configured(tuple(config.routes), config.reactions)
        if configured != self._configured:
            self._configured = configured
            self._inbox.feed(configured)

    def tell(self, effect: Tell) -> None:
        self.host.take(effect.incident)
        self._escalator.tell(effect.incident)

    async def try_route(self, name: str) -> Delivery:
        """Send a test alarm by a route; one that arrives ends the route's open incident."""
        found = self._routes.get(name)
        if found is None:
            there = f"there are: {', '.join(self._routes)}" if self._routes else "none is configured"
            raise UsageError(f"there is no route {name}; {there}")
        route = route_of(found)
        delivery = await in_thread(TRIALS, _deliver, route, trial_of(name, self._clock.now()))
        if delivery.ok:
            self._inbox.feed(Reached(name))
        return delivery

    def routes(self) -> list[dict[str, Any]]:
        """Return the alarm routes: name, kind and number of waiting notices, without the address."""
        waiting = self._workers.waiting()
        return [{"name": name, "by": route.by, "waiting": waiting.get(name, 0)} for name, route in self._routes.items()]

    def close(self) -> None:
        """Raise no more alarms; the next daemon tells what is still due."""
        self.heartbeat.close()
        self._workers.close(CLOSE_S)
        end_running()  # a notifier that hangs does not outlive us
        self._workers.close(CLOSE_S)


def route_of(route: RouteConfig) -> Route:
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
