"""Known incidents: the newest version of each, and its notices in this life; for several threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from vigil.core.model.incident import Incident, Notice

OVER = 1_000


@dataclass(slots=True)
class Known:
    """A known incident's newest version, its notices of this life, and the next one's moment."""

    incident: Incident
    handed: dict[str, Notice] = field(default_factory=dict)  # sent; or failed, then `at` is the next try
    next_at: float | None = None

    def seen(self) -> Incident:
        """Return a known incident with this life's records; those that have come back prevail."""
        recorded = {notice.id: notice.attempts for notice in self.incident.notices}
        missing = {id_: notice for id_, notice in self.handed.items() if notice.attempts > recorded.get(id_, 0)}
        kept = tuple(notice for notice in self.incident.notices if notice.id not in missing)
        return replace(self.incident, notices=(*kept, *missing.values()))

    def is_overtaken_by(self, incident: Incident) -> bool:
        """Say whether an incident is the known version or a later one."""
        return _age(incident) >= _age(self.incident)


def _age(incident: Incident) -> tuple[int, bool]:
    return incident.reopened, incident.resolved_at is not None


class KnownIncidents:
    """Known incidents that people may yet hear of; callers hold the lock, except for `newest`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._open: dict[str, Known] = {}
        # Notices of incidents that are over, oldest first: their last records may still come back, one by one.
        self._over: dict[str, Known] = {}

    def newest(self, incident_id: str) -> Incident | None:
        """Return the newest known version of an incident; from any thread."""
        with self.lock:
            known = self._open.get(incident_id) or self._over.get(incident_id)
            return None if known is None else known.incident

    def get(self, incident_id: str) -> Known | None:
        """Return a known incident of which more may be due."""
        return self._open.get(incident_id)

    def all(self) -> list[Known]:
        return list(self._open.values())

    def take(self, incident: Incident) -> Known | None:
        """Keep an incident's newest version as known, and return that; None if it is older."""
        known = self._open.get(incident.id) or self._over.get(incident.id)
        if known is not None and not known.is_overtaken_by(incident):
            return None
        known = known or Known(incident)
        self._over.pop(incident.id, None)
        self._open[incident.id] = known
        known.incident = incident
        return known

    def is_over(self, known: Known) -> None:
        """Keep a known incident as over: nothing more is due of it."""
        del self._open[known.incident.id]
        self._over[known.incident.id] = known
        if len(self._over) > OVER:
            del self._over[next(iter(self._over))]

    def forget(self, incident_id: str) -> None:
        self._open.pop(incident_id, None)
        self._over.pop(incident_id, None)
