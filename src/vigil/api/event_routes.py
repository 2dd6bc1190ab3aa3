"""Routes about what happened: the event log, its stream, and death records."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse

from vigil.api.access import TheDaemon
from vigil.api.death_views import death_detail, death_view
from vigil.api.views import event_view, kept_headers
from vigil.core.book import SAME_S
from vigil.core.model.death import Death
from vigil.daemon.daemon import Daemon
from vigil.errors import NoSuchSession
from vigil.forensics import read_bundle
from vigil.moments import rfc3339
from vigil.store.store import StoredEvent
from vigil.threads import READS, SHOWN, in_thread

HEARTBEAT_S = 15.0
LATER = 200
MOST_SEQ = 2**63 - 1
Limit = Annotated[int, Query(ge=1, le=10000)]
After = Annotated[int, Query(ge=0, le=MOST_SEQ)]
router = APIRouter()


@router.get("/v1/events")
async def events(
    daemon: TheDaemon, session: str | None = None, since: float | None = None, after: After = 0, limit: Limit = 1000
) -> Response:
    """The event log, oldest first; the newest ones if there are more than `limit`."""
    found = await in_thread(READS, daemon.store.read_events, after, _id_of(daemon, session), since, limit, True)
    return _listed(daemon, "events", [event_view(stored) for stored in found])


@router.get("/v1/events/stream")
async def stream(
    daemon: TheDaemon,
    session: str | None = None,
    after: After | None = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=MOST_SEQ)] = None,
) -> StreamingResponse:
    """The event log as it grows, as server-sent events; `Last-Event-ID` resumes where a reader was."""
    newest = daemon.feed.last_seq
    start = last_event_id if last_event_id is not None else after if after is not None else newest
    start = min(start, newest)  # a number from a lost database: its owner would wait until the log reaches it again
    return StreamingResponse(_sse(daemon, start, _id_of(daemon, session)), media_type="text/event-stream")


@router.get("/v1/deaths")
async def deaths(daemon: TheDaemon, session: str | None = None, limit: Limit = 1000) -> Response:
    """Death records, newest first; of a session that was removed by its name."""
    found = await in_thread(READS, _deaths_of, daemon, session, limit)
    if not found and session is not None:
        daemon.operations.find(session)  # raises if there is no such session
    return _listed(daemon, "deaths", [death_view(death) for death in found])


def _listed(daemon: Daemon, kind: str, found: list[dict[str, Any]]) -> Response:
    return Response(json.dumps(found), headers=kept_headers(daemon.store, kind), media_type="application/json")


def _deaths_of(daemon: Daemon, name: str | None, limit: int) -> list[Death]:
    if name is None:
        return daemon.store.read_deaths(None, limit)
    known = daemon.machine.find(name)
    if known is not None:
        return daemon.store.read_deaths(known.id, limit)
    return daemon.store.read_deaths_of_removed(name, limit)


@router.get("/v1/deaths/{which:whole}")
async def death(daemon: TheDaemon, which: str) -> dict[str, Any]:
    """One death record, or a session's last one, with its evidence, what its bundle holds, and what followed."""
    found = await in_thread(READS, daemon.store.read_death, which)
    if found is None:
        found = next(iter(await in_thread(READS, _deaths_of, daemon, which, 1)), None)
    if found is None:
        what = f"{which} has not died yet" if daemon.machine.find(which) else f"there is no death record {which}"
        removed = daemon.store.removed_until.get("deaths")
        gone = "" if removed is None else f", and older ones than {rfc3339(removed)} were deleted ([retention])"
        raise NoSuchSession(f"{what}; vigil deaths lists those there are{gone}")
    folder = daemon.home.deaths / found.id
    bundle = await in_thread(SHOWN, read_bundle, folder, about=found.id)
    if bundle is not None:
        bundle = replace(bundle, last_events=await in_thread(SHOWN, daemon.coroner.with_words, found, bundle.last_events))
    beside = await in_thread(READS, daemon.store.read_died_with, found, SAME_S)
    return death_detail(found, bundle, folder, beside, await in_thread(READS, _after, daemon, found))


def _after(daemon: Daemon, death: Death) -> list[StoredEvent]:
    """Return a session's events between one death and its next."""
    later: list[StoredEvent] = []
    told = False
    for stored in daemon.store.read_events(session_id=death.session_id, since=death.at - 1.0, limit=LATER):
        is_death = stored.entry.kind == "session.died"
        if told and is_death:
            break
        told = told or (is_death and stored.entry.data.get("death") == death.id)
        if told:
            later.append(stored)
    return later


async def _sse(daemon: Daemon, after: int, session_id: str | None) -> AsyncIterator[bytes]:
    yield b": vigil\n\n"
    while True:
        batch = await daemon.feed.after(after, HEARTBEAT_S)
        if not batch:
            yield b": alive\n\n"
            continue
        after = batch[-1].seq
        wanted = (stored for stored in batch if session_id is None or stored.entry.session_id == session_id)
        if text := "".join(map(sse_text, wanted)):
            yield text.encode()


def sse_text(stored: StoredEvent) -> str:
    """Return an event as a subscriber of the stream is sent it."""
    return f"id: {stored.seq}\nevent: {stored.entry.kind}\ndata: {json.dumps(event_view(stored))}\n\n"


def _id_of(daemon: Daemon, name: str | None) -> str | None:
    return daemon.operations.find(name).id if name is not None else None
