"""Routes about what happened: the event log, its stream, and death records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse

from vigil.api.access import TheDaemon
from vigil.api.views import death_view, event_view
from vigil.daemon.daemon import Daemon
from vigil.errors import NoSuchSession

HEARTBEAT_S = 15.0

Limit = Annotated[int, Query(ge=1, le=10000)]

router = APIRouter()


@router.get("/v1/events")
async def events(
    daemon: TheDaemon, session: str | None = None, since: float | None = None, after: int = 0, limit: Limit = 1000
) -> Response:
    """The event log, oldest first; the newest ones if there are more than `limit`."""
    found = await asyncio.to_thread(daemon.store.read_events, after, _id_of(daemon, session), since, limit, True)
    return Response(json.dumps([event_view(stored) for stored in found]), media_type="application/json")


@router.get("/v1/events/stream")
async def stream(
    daemon: TheDaemon,
    session: str | None = None,
    after: int | None = None,
    last_event_id: Annotated[int | None, Header()] = None,
) -> StreamingResponse:
    """The event log as it grows, as server-sent events; `Last-Event-ID` resumes where a reader was."""
    start = last_event_id if last_event_id is not None else after if after is not None else daemon.feed.last_seq
    return StreamingResponse(_sse(daemon, start, _id_of(daemon, session)), media_type="text/event-stream")


@router.get("/v1/deaths")
async def deaths(daemon: TheDaemon, session: str | None = None, limit: Limit = 1000) -> Response:
    """Death records, newest first."""
    found = await asyncio.to_thread(daemon.store.read_deaths, _id_of(daemon, session), limit)
    return Response(json.dumps([death_view(death) for death in found]), media_type="application/json")


@router.get("/v1/deaths/{death_id}")
async def death(daemon: TheDaemon, death_id: str) -> dict[str, Any]:
    """One death record with its evidence."""
    found = await asyncio.to_thread(daemon.store.read_death, death_id)
    if found is None:
        raise NoSuchSession(f"there is no death record {death_id}")
    return death_view(found)


async def _sse(daemon: Daemon, after: int, session_id: str | None) -> AsyncIterator[bytes]:
    yield b": vigil\n\n"
    while True:
        batch = await daemon.feed.after(after, HEARTBEAT_S)
        if not batch:
            yield b": alive\n\n"
            continue
        after = batch[-1].seq
        text = "".join(
            f"id: {stored.seq}\nevent: {stored.entry.kind}\ndata: {json.dumps(event_view(stored))}\n\n"
            for stored in batch
            if session_id is None or stored.entry.session_id == session_id
        )
        if text:
            yield text.encode()


def _id_of(daemon: Daemon, name: str | None) -> str | None:
    return daemon.operations.find(name).id if name else None
