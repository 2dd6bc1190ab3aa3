"""What the API shows of one incident: its evidence, and its whole story, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vigil.api.views import incident_view
from vigil.core.model.incident import Incident, IncidentKind, NoticeState
from vigil.core.rules.notice import GIVEN_UP
from vigil.moments import rfc3339
from vigil.store.store import StoredEvent

TIMES = ("retry_at",)


def incident_detail(incident: Incident, events: Sequence[StoredEvent]) -> dict[str, Any]:
    """Return all there is about one incident."""
    return incident_view(incident) | {
        "acked_by": incident.acked_by or None,
        "escalated_at": rfc3339(incident.escalated_at),
        "reopened": incident.reopened,
        "evidence": [{"source": line.source, "text": line.text} for line in incident.evidence],
        "reactions": [
            {"at": rfc3339(one.at), "do": one.do, "outcome": one.outcome, "why": one.why} for one in incident.reactions
        ],
        "timeline": [_line(stored) for stored in events],
    }


def routes_view(routes: list[dict[str, Any]], incidents: Iterable[Incident]) -> list[dict[str, Any]]:
    """Return the routes, each with its trouble."""
    trouble = {route: one.why for one in incidents if one.kind is IncidentKind.UNDELIVERED for route in one.about}
    return [{**route, "trouble": trouble.get(route["name"])} for route in routes]


def reached_nobody(incident: Incident) -> bool:
    """Say whether every route for an unacknowledged incident gave up."""
    states = {notice.state for notice in incident.notices}
    return (
        bool(states) and states <= GIVEN_UP | {NoticeState.CANCELLED} and bool(states & GIVEN_UP) and incident.acked_at is None
    )


def _line(stored: StoredEvent) -> dict[str, Any]:
    entry = stored.entry
    data = {key: value for key, value in entry.data.items() if key not in ("incident", "kind")}
    data |= {key: rfc3339(data[key]) for key in TIMES if isinstance(data.get(key), int | float)}
    return {"at": rfc3339(entry.at), "what": entry.kind.removeprefix("incident."), "data": data}
