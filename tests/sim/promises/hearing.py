"""P14: what was urgent is told, even when it is already over; once, in a notice that says both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.promises.base import Promise
from tests.sim.promises.telling import OneIncident
from vigil.core.model.incident import Incident, NoticeState
from vigil.core.rules.escalation import Due

if TYPE_CHECKING:
    from tests.sim.world import World

ON_ITS_WAY_S = 30.0  # a storm gathers, a daemon starts
# It is tried still, or was tried as often as a route is: another promise counts that.
TRIED = frozenset({NoticeState.SENDING, NoticeState.RETRYING, NoticeState.FAILED, NoticeState.UNKNOWN})


class Heard(Promise):
    """What was urgent is told, even when it is already over, unless somebody knows of it or its session was removed."""

    name = "P14"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._heard: set[str] = set()  # incidents that a human heard of
        self._both: set[tuple[str, str]] = set()  # incidents and routes that heard of it and of its end at once

    def delivered(self, due: Due) -> None:
        self._heard.add(due.incident.id)
        place = (due.incident.id, due.route)
        if due.event == "resolved":
            self.demand(place not in self._both, f"{due.incident.key} is called over twice to {due.route}")
        elif due.incident.resolved_at is None:
            self._both.discard(place)  # it came back
        else:
            self._both.add(place)

    def calm(self) -> None:
        for incident in self.world.store.incidents.values():
            if incident.kind in OneIncident.URGENT and incident.resolved_at is not None and not self._is_known(incident):
                over_s = self.world.daemon.clock() - incident.resolved_at
                tried = any(notice.state in TRIED for notice in incident.notices)
                told = incident.id in self._heard or tried or over_s < ON_ITS_WAY_S
                self.demand(told, f"{incident.key} was urgent for {self._lasted_s(incident):.1f} s, and nobody heard of it")

    def _is_known(self, incident: Incident) -> bool:
        """Say whether somebody said that they know of it, or removed what it was about."""
        of_session = incident.session_id is not None and incident.key.startswith(f"{incident.session_id}/")
        gone = of_session and incident.session_id not in self.world.store.sessions
        return incident.acked_at is not None or gone or incident.resolution.endswith(" was removed")

    def _lasted_s(self, incident: Incident) -> float:
        return (incident.resolved_at or 0.0) - incident.opened_at
