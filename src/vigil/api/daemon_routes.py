"""Routes about the daemon itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from vigil import __version__
from vigil.api.access import Actor, TheDaemon
from vigil.api.incident_views import reached_nobody, routes_view
from vigil.daemon.serve.stop_all import Unknown, end_unknown
from vigil.errors import VigilError
from vigil.kernel.cgroups import CgroupPlace
from vigil.moments import rfc3339
from vigil.threads import SHOWN, in_thread

router = APIRouter()


@router.get("/v1/daemon")
async def status(daemon: TheDaemon) -> dict[str, Any]:
    """Who the daemon is and how it is."""
    return {
        "pid": daemon.pid,
        "keeper_pid": daemon.keeper.pid,
        "started_at": rfc3339(daemon.started_at),
        "version": __version__,
        "home": str(daemon.home.path),
        "sessions": len(daemon.operations.sessions()),
        "lateness_ms": daemon.lateness.summary(),
        "clock_lateness_ms": daemon.alarms.heartbeat.lateness(),
        "clock_off_s": round(daemon.clock.off_s(), 3),
        "probes": daemon.probes(),
        "sweep": asdict(daemon.sweep.passes),
        "hooks": daemon.hooks.counts(),
        "unknown_events": [
            {"agent": agent, "name": daemon.secrets.everything.text(name), "count": count}
            for (agent, name), count in daemon.listening.unknown.most_common()
        ],
        "incidents": len(daemon.supervisor.incidents),
        "routes": routes_view(daemon.alarms.routes(), daemon.supervisor.incidents.values()),
        "untold": [incident.id for incident in daemon.supervisor.incidents.values() if reached_nobody(incident)],
        "config": {"path": str(daemon.config.path), "problem": daemon.config.problem},
        "keeper_wedged": daemon.keeper.wedged,
        "store_trouble": daemon.supervisor.store_trouble,
        "recording": daemon.recording(),
        "isolation": _isolation_view(await in_thread(SHOWN, daemon.isolation.place, about="isolation")),
    }


def _isolation_view(place: CgroupPlace) -> dict[str, Any]:
    return {"folder": place.folder or None, "controllers": sorted(place.controllers), "why": place.why or None}


@router.post("/v1/daemon:stop")
async def stop(daemon: TheDaemon, actor: Actor, kill_sessions: bool = False) -> dict[str, Any]:
    """End the daemon; sessions live on unless they are to be ended too."""
    left = await daemon.operations.kill_all(actor) if kill_sessions else []
    unknown: list[Unknown] = []
    if kill_sessions:
        keeper = daemon.keeper.living_pid
        unknown, living = await end_unknown(daemon.home, daemon.supervisor, daemon.census, keeper, actor)
        left += [f"{one.words()}, which no session knows" for one in living]
    daemon.stop(with_keeper=kill_sessions and not left)
    if left:
        raise VigilError(f"could not end {', '.join(left)}; the daemon stops, they live on")
    return {"stopped": True, "unknown": [one.words() for one in unknown]}
