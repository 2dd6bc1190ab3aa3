"""The courier: in a route's thread, records its notices, composes their words, and records their outcomes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vigil.config.values import RouteConfig
from vigil.core.events import Notified
from vigil.core.model.incident import Incident, Notice, NoticeState
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.rules.escalation import Due
from vigil.core.rules.notice import RoutePatience, begun, fate_of, why_unwanted
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.inbox import Inbox
from vigil.daemon.base.secrets import Secrets
from vigil.daemon.tell.known import KnownIncidents
from vigil.forensics import read_bundle
from vigil.forensics.tails import read_tail
from vigil.home import Home
from vigil.notify import Delivery, message_of, summary_of

LINES = 20  # of a last output
RECORD_S = 0.25  # with its worker's half second: if the store takes longer we send first, then record (P6)


@dataclass(eq=False, repr=False)
class Courier:
    _clock: Clock
    _inbox: Inbox
    _known: KnownIncidents
    _details: Callable[[Incident], Mapping[str, Any]]  # of an incident, for routes that may tell them
    _route_of: Callable[[str], RouteConfig | None]

    def prepare(self, dues: list[Due]) -> tuple[list[Due], bytes]:
        """Record notices before the courier sends them; return those still wanted, and their text."""
        wanted, events = [], []
        for due in dues:
            newest = self._known.newest(due.incident.id) or due.incident
            if newest.resolved_at is not None:  # one notice says both
                due = replace(due, incident=newest)
            notice = self._begun(due)
            if (why := why_unwanted(due.event, due.route, newest)) is not None:
                notice = replace(self._first(due), state=NoticeState.CANCELLED, at=notice.at, why=why, attempts=notice.attempts)
            else:
                wanted.append(due)
            events.append(Notified(due.incident.id, notice))
        body = self._compose(wanted) if wanted else b""
        self._inbox.record_from_thread(events, RECORD_S)
        return wanted, body

    def told(self, due: Due, delivery: Delivery) -> None:
        route = self._route_of(due.route)
        patience = RoutePatience() if route is None else route.patience
        notice = fate_of(self._begun(due), delivery, patience, self._clock.now(), random.uniform(-1.0, 1.0))
        self._inbox.feed_from_thread(Notified(due.incident.id, notice))

    def _begun(self, due: Due) -> Notice:
        over = due.incident.resolved_at is not None
        return begun(due.before or self._first(due), self._clock.now(), over)

    def _first(self, due: Due) -> Notice:
        """Return a notice that the courier has not tried yet."""
        return Notice(due.notice_id, due.route, NoticeState.SENDING, 0.0, event=due.event, attempts=0, rung=due.rung)

    def _compose(self, dues: Sequence[Due]) -> bytes:
        route = self._route_of(dues[0].route)
        detailed = route is not None and route.details
        if len(dues) > 1:
            return summary_of(dues, detailed)
        return message_of(dues[0], self._details(dues[0].incident) if detailed else None)


class Details:
    """What the courier may add to a notice: evidence and last output, without known secrets.

    It reads files, never in the clock's thread."""

    def __init__(self, home: Home, secrets: Secrets, find: Callable[[str], Session | None]) -> None:
        self._home = home
        self._secrets = secrets
        self._find = find

    def of(self, incident: Incident) -> dict[str, Any]:
        """Return what the courier can tell of an incident, without what cannot be read."""
        found: dict[str, Any] = {"evidence": [f"{one.text} ({one.source})" for one in incident.evidence]}
        session = self._find(incident.session_id or "")
        death_id = incident.deaths[-1] if incident.deaths else None
        if session is not None and session.launch is not None and session.launch.ended_at is None:
            found["screen"] = self._last_of(session, "screen")
        elif death_id is None and session is not None and session.last_death is not None:
            death_id = session.last_death.id
        bundle = read_bundle(self._home.deaths / death_id) if death_id is not None else None
        if bundle is not None:
            found |= {"stderr": bundle.stderr_tail[-LINES:], "screen": bundle.pane_tail[-LINES:]}
        elif session is not None and "screen" not in found:  # it died just now, and its record is still being made
            found |= {"stderr": self._last_of(session, "stderr.log"), "screen": self._last_of(session, "screen")}
        redact = self._secrets.redactor(incident.session_id or "").value
        return {name: redact(lines) for name, lines in found.items() if lines}

    def _last_of(self, session: Session, name: str) -> list[str]:
        if session.launch is None:
            return []
        try:
            tail = read_tail(self._home.launch(session.launch.id) / name, self._secrets.redactor(session.id).text)
        except OSError:
            return []
        return [line.rstrip() for line in tail.text.splitlines() if line.strip()][-LINES:]
