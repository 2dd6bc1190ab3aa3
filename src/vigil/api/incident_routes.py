"""Routes about incidents, and about the ways to reach people."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Response

from vigil.api.access import Actor, TheDaemon
from vigil.api.incident_views import incident_detail
from vigil.api.views import incident_view, kept_headers
from vigil.core.events import Acked
from vigil.core.model.incident import Incident
from vigil.daemon.daemon import Daemon
from vigil.errors import NoSuchSession, Refused
from vigil.threads import READS, in_thread

router = APIRouter()


@router.get("/v1/incidents")
async def incidents(daemon: TheDaemon, response: Response, all: bool = False) -> list[dict[str, Any]]:
    """What needs a human, newest first; with `all` also what is over."""
    if not all:
        found = sorted(daemon.supervisor.incidents.values(), key=lambda incident: -incident.opened_at)
    else:
        found = await in_thread(READS, daemon.store.read_incidents, True)
        response.headers.update(kept_headers(daemon.store, "incidents"))
    return [incident_view(incident) for incident in found]


@router.get("/v1/incidents/{incident_id:whole}")
async def incident(daemon: TheDaemon, incident_id: str) -> dict[str, Any]:
    """One incident: its evidence, and all that was done about it, in order."""
    found = await _find(daemon, incident_id)
    events = await in_thread(READS, daemon.store.read_incident_events, found)
    return incident_detail(found, events)


@router.post("/v1/incidents/{incident_id:whole}:ack")
async def ack(daemon: TheDaemon, incident_id: str, actor: Actor) -> dict[str, Any]:
    """A person knows of it: nobody is told again before it is over."""
    found = await _find(daemon, incident_id)
    if found.resolved_at is not None:
        raise Refused(f"{incident_id} is over already: {found.resolution}")
    if found.acked_at is None:
        await daemon.supervisor.done(Acked(incident_id, actor))
    return incident_view(await _find(daemon, incident_id))


@router.post("/v1/routes/{name}:test")
async def test(daemon: TheDaemon, name: str) -> dict[str, Any]:
    """Send a test by a route, and say what became of it."""
    daemon.config.read()  # raises if it is not valid: then the old one sends nothing either
    daemon.use_config()
    began = time.monotonic()
    delivery = await daemon.alarms.try_route(name)
    outcome = "delivered" if delivery.ok else "unknown" if delivery.unsure else "failed"
    took_s = round(time.monotonic() - began, 3)
    return {"route": name, "outcome": outcome, "why": delivery.why, "permanent": delivery.permanent, "took_s": took_s}


async def _find(daemon: Daemon, incident_id: str) -> Incident:
    """Return the incident of exactly this id, as far as it is durable."""
    still_open = (incident for incident in daemon.supervisor.incidents.values() if incident.id == incident_id)
    found = next(still_open, None) or await in_thread(READS, daemon.store.read_incident, incident_id)
    if found is None:
        raise NoSuchSession(f"there is no incident {incident_id}; vigil incidents --all shows those there were")
    return found
