"""The courier: in a route's thread, records its notices, composes their words, and records their outcomes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vigil.config.values import RouteConfig
from vigil.core.events import Notified
from vigil.core.model.incident import Incident, Notice, NoticeState
from vigil.core.model.replace import replace
from vigil.core.rules.escalation import Due, is_wanted
from vigil.core.rules.notice import RoutePatience, begun, fate_of
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.inbox import Inbox
from vigil.daemon.tell.known import KnownIncidents
from vigil.notify import Delivery, message_of, summary_of

RECORD_S = 0.25  # with its worker's half second: if the store takes longer we send first, then record (P6)


class Courier:
    def __init__(
        self,
        clock: Clock,
        inbox: Inbox,
        known: KnownIncidents,
        details: Callable[[Incident], Mapping[str, Any]],
        route_of: Callable[[str], RouteConfig | None],
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._known = known
        self._details = details  # of an incident, for routes that may tell them
        self._route_of = route_of

    def prepare(self, dues: list[Due]) -> tuple[list[Due], bytes]:
        """Record what is about to be sent; return what still is to be, and its text."""
        wanted, events = [], []
        for due in dues:
            newest = self._known.newest(due.incident.id)
            notice = self._begun(due)
            if newest is not None and not is_wanted(due, newest):
                why = "it is over" if newest.resolved_at is not None else "it was acknowledged"
                notice = replace(self._first(due), state=NoticeState.CANCELLED, at=notice.at, why=why, attempts=notice.attempts)
            else:
                wanted.append(due)
            events.append(Notified(due.incident.id, notice))
        body = self._compose(wanted) if wanted else b""
        self._inbox.record_from_thread(events, RECORD_S)
        return wanted, body

    def told(self, due: Due, delivery: Delivery) -> None:
        """Record a notice's outcome."""
        route = self._route_of(due.route)
        patience = RoutePatience() if route is None else route.patience
        notice = fate_of(self._begun(due), delivery, patience, self._clock.now(), random.uniform(-1.0, 1.0))
        self._inbox.feed_from_thread(Notified(due.incident.id, notice))

    def _begun(self, due: Due) -> Notice:
        return begun(due.before or self._first(due), self._clock.now())

    def _first(self, due: Due) -> Notice:
        """Return a notice that was not tried yet."""
        return Notice(due.notice_id, due.route, NoticeState.SENDING, 0.0, event=due.event, attempts=0, rung=due.rung)

    def _compose(self, dues: Sequence[Due]) -> bytes:
        route = self._route_of(dues[0].route)
        detailed = route is not None and route.details
        if len(dues) > 1:
            return summary_of(dues, detailed)
        return message_of(dues[0], self._details(dues[0].incident) if detailed else None)
