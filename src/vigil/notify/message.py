"""What a notice says: its incident as one line of JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from vigil.core.escalate import Due


def message_of(due: Due) -> bytes:
    """Return the incident with the fields of `vigil incidents`, and which notice of it this is."""
    incident = due.incident
    return json.dumps(
        {
            "notice": due.notice_id,
            "event": due.event,
            "route": due.route,
            "id": incident.id,
            "key": incident.key,
            "kind": incident.kind.value,
            "severity": incident.severity.value,
            "session": incident.session,
            "opened_at": _rfc3339(incident.opened_at),
            "count": incident.count,
            "acked_at": _rfc3339(incident.acked_at),
            "resolved_at": _rfc3339(incident.resolved_at),
            "why": incident.why,
            "deaths": list(incident.deaths),
        }
    ).encode("ascii")


def _rfc3339(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
