"""The routes (OpenAPI at /openapi.json). A verb is a suffix after a colon, which no name can hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from vigil import __version__
from vigil.api.peers import find_agent
from vigil.api.views import death_view, event_view, rfc3339, session_detail, session_view, why_view
from vigil.core.explain import explain
from vigil.core.model import ALIVE, RestartPolicy, RestartWhen, RuntimeKind, Session
from vigil.daemon.daemon import Daemon
from vigil.daemon.operations import Wanted, refuse_agent
from vigil.errors import NoSuchSession, Refused, UsageError, VigilError
from vigil.text import decode, plain

STATUS = {1: 409, 2: 400, 3: 404, 4: 403, 5: 503}
HEARTBEAT_S = 15.0

Verb = Literal["stop", "start", "restart", "reset"]


class RunRequest(BaseModel):
    """A session to declare and launch."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    agent: str = "generic"
    runtime: RuntimeKind = RuntimeKind.TMUX
    command: list[str] = Field(default_factory=list)
    cwd: str
    env: dict[str, str] = Field(default_factory=dict)
    restart: RestartWhen = RestartWhen.NEVER
    max_restarts: int = Field(0, ge=0, le=1_000_000)
    backoff_base_s: float = Field(5.0, ge=0.01, le=86400)


@dataclass(frozen=True)
class Caller:
    """Who asks: a person, or an agent below the keeper and its session as far as it is known."""

    actor: str
    is_agent: bool
    session: Session | None


def make_app(daemon: Daemon) -> FastAPI:
    """Return the API over one daemon."""
    app = FastAPI(title="Vigil", version=__version__, docs_url=None, redoc_url=None)
    machine, operations = daemon.machine, daemon.operations

    def caller_of(request: Request) -> Caller:
        pid = request.client.port if request.client else 0
        below, session = find_agent(pid, daemon.keeper.pid, machine)
        actor = f"agent {session.name}" if session else "an agent" if below else "operator"
        return Caller(actor, below, session)

    def may_change(request: Request, name: str | None) -> str:
        """Return the actor, or refuse: an agent changes nobody but itself."""
        caller = caller_of(request)
        if caller.is_agent and (caller.session is None or caller.session.name != name):
            raise refuse_agent(caller.actor, f"change {name}" if name else "create or end sessions")
        return caller.actor

    @app.exception_handler(VigilError)
    async def _failed(_: Request, error: VigilError) -> JSONResponse:
        return JSONResponse({"error": str(error), "exit_code": error.exit_code}, STATUS[error.exit_code])

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        words = "; ".join(f"{'.'.join(map(str, e['loc'][1:])) or e['loc'][0]}: {e['msg']}" for e in error.errors())
        return JSONResponse({"error": words, "exit_code": UsageError.exit_code}, 400)

    @app.get("/v1/daemon")
    async def status() -> dict[str, Any]:
        """Who the daemon is and how it is."""
        return {
            "pid": daemon.pid,
            "keeper_pid": daemon.keeper.pid,
            "started_at": rfc3339(daemon.started_at),
            "version": __version__,
            "home": str(daemon.home.path),
            "sessions": len(machine.sessions),
            "lateness_ms": daemon.lateness.summary(),
            "probes": {"in_flight": 0, "abandoned": 0},
            "keeper_wedged": daemon.keeper.wedged,
            "store_trouble": daemon.supervisor.store_trouble,
        }

    @app.post("/v1/daemon:stop")
    async def stop(request: Request, kill_sessions: bool = False) -> dict[str, Any]:
        """End the daemon; sessions live on unless they are to be ended too."""
        actor = may_change(request, None)
        left = await operations.kill_all(actor) if kill_sessions else []
        daemon.stop(with_keeper=kill_sessions and not left)
        if left:
            raise VigilError(f"could not end {', '.join(left)}; the daemon stops, they live on")
        return {"stopped": True}

    @app.get("/v1/sessions")
    async def sessions(all: bool = False) -> Response:
        """Every session; without `all`, those that have been over for a day are left out."""
        found = [session for session in operations.sessions() if all or not daemon.is_old(session)]
        found.sort(key=lambda session: session.name)
        return Response(json.dumps([session_view(session) for session in found]), media_type="application/json")

    @app.post("/v1/sessions", status_code=201)
    async def run(wanted: RunRequest, request: Request) -> dict[str, Any]:
        """Declare a session and launch it."""
        actor = may_change(request, None)
        policy = RestartPolicy(wanted.restart, wanted.max_restarts, wanted.backoff_base_s)
        command = tuple(wanted.command)
        order = Wanted(wanted.name, wanted.agent, wanted.runtime, command, wanted.cwd, wanted.env, policy)
        return session_detail(await operations.run(order, actor))

    @app.get("/v1/sessions/{name:path}:why")
    async def why(name: str) -> dict[str, Any]:
        """Why a session is as it is."""
        session = operations.find(name)
        return why_view(name, explain(session), daemon.clock.now())

    @app.get("/v1/sessions/{name:path}:attach")
    async def attach(name: str, request: Request) -> dict[str, Any]:
        """The command that shows a person the terminal."""
        may_change(request, name)
        session = operations.find(name)
        launch = session.launch
        argv = daemon.runtimes[session.spec.runtime].attach_argv(launch) if launch else None
        if session.spec.runtime is RuntimeKind.HEADLESS:
            raise Refused(f"{name} is headless and has no terminal; vigil logs --follow {name} shows what it prints")
        if argv is None or session.state not in ALIVE or launch is None or launch.ended_at is not None:
            raise Refused(f"{name} is {session.state}: there is no terminal to attach to")
        return {"argv": argv}

    @app.get("/v1/sessions/{name:path}:logs")
    async def logs(
        name: str, lines: Annotated[int, Query(ge=0, le=1_000_000)] = 1000, raw: bool = False, follow: bool = False
    ) -> Response:
        """What the agent printed."""
        session = operations.find(name)
        if session.launch is None:
            return Response(b"")
        launch, runtime = session.launch, daemon.runtimes[session.spec.runtime]
        shown = (lambda data: data) if raw else (lambda data: plain(decode(data)).encode())
        if not follow:
            return Response(shown(await runtime.read_output(launch, lines)), media_type="application/octet-stream")

        async def chunks() -> AsyncIterator[bytes]:
            async for data in runtime.follow_output(launch, lines):
                if data:
                    yield shown(data)
                now = machine.of_launch(launch.id)
                if not data and (now is None or now.launch is None or now.launch.ended_at is not None):
                    return

        return StreamingResponse(chunks(), media_type="application/octet-stream")

    @app.get("/v1/sessions/{name:path}")
    async def get(name: str) -> dict[str, Any]:
        """All there is about one session."""
        session = operations.find(name)
        await daemon.look(session)
        return session_detail(operations.find(name))

    @app.post("/v1/sessions/{name:path}:{verb}")
    async def ask(name: str, verb: Verb, request: Request, reason: str = "") -> dict[str, Any]:
        """Stop, start, restart or reset a session, and wait until that is done."""
        session = await operations.ask(verb, name, may_change(request, name), reason)
        if session is None:
            raise NoSuchSession(f"{name} was removed meanwhile")
        return session_detail(session)

    @app.delete("/v1/sessions/{name:path}")
    async def rm(name: str, request: Request) -> dict[str, Any]:
        """End a session and purge its identity."""
        actor = may_change(request, name)
        session = operations.find(name)
        await operations.ask("rm", name, actor)
        kept = [f"folder {session.spec.cwd}", "death records and events"]
        return {"name": name, "purged": await operations.purged(session.id), "kept": kept}

    @app.get("/v1/events")
    async def events(
        session: str | None = None,
        since: float | None = None,
        after: int = 0,
        limit: Annotated[int, Query(ge=1, le=10000)] = 1000,
    ) -> Response:
        """The event log, oldest first; the newest ones if there are more than `limit`."""
        session_id = operations.find(session).id if session else None
        found = await asyncio.to_thread(daemon.store.read_events, after, session_id, since, limit, True)
        return Response(json.dumps([event_view(stored) for stored in found]), media_type="application/json")

    @app.get("/v1/events/stream")
    async def stream(
        session: str | None = None, after: int | None = None, last_event_id: Annotated[int | None, Header()] = None
    ) -> StreamingResponse:
        """The event log as it grows, as server-sent events; `Last-Event-ID` resumes where a reader was."""
        session_id = operations.find(session).id if session else None
        start = last_event_id if last_event_id is not None else after if after is not None else daemon.feed.last_seq
        return StreamingResponse(_sse(daemon, start, session_id), media_type="text/event-stream")

    @app.get("/v1/deaths")
    async def deaths(session: str | None = None, limit: Annotated[int, Query(ge=1, le=10000)] = 1000) -> Response:
        """Death records, newest first."""
        session_id = operations.find(session).id if session else None
        found = await asyncio.to_thread(daemon.store.read_deaths, session_id, limit)
        return Response(json.dumps([death_view(death) for death in found]), media_type="application/json")

    @app.get("/v1/deaths/{death_id}")
    async def death(death_id: str) -> dict[str, Any]:
        """One death record with its evidence."""
        found = await asyncio.to_thread(daemon.store.read_death, death_id)
        if found is None:
            raise NoSuchSession(f"there is no death record {death_id}")
        return death_view(found)

    return app


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
