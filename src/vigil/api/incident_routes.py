"""Routes about incidents."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from vigil.api.access import TheDaemon
from vigil.api.views import incident_view

router = APIRouter()


@router.get("/v1/incidents")
async def incidents(daemon: TheDaemon, all: bool = False) -> list[dict[str, Any]]:
    """What needs a human, newest first; with `all` also what is over."""
    if not all:
        found = sorted(daemon.supervisor.incidents.values(), key=lambda incident: -incident.opened_at)
    else:
        found = await asyncio.to_thread(daemon.store.read_incidents, True)
    return [incident_view(incident) for incident in found]
