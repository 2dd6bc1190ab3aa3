"""Routes about what comes and goes: the reaper's sweep, adopting and releasing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from vigil.api.access import Actor, TheDaemon
from vigil.api.views import session_detail
from vigil.daemon.base.sweeps import Reaped
from vigil.daemon.serve.adoption import Candidate
from vigil.redact import redact_command

router = APIRouter()


@router.post("/v1/reap")
async def reap(daemon: TheDaemon, actor: Actor, dry_run: bool = False) -> list[dict[str, Any]]:
    """Look at everything and do what the table says; a dry run does nothing."""
    return [_shown(outcome) for outcome in await daemon.reaper.sweep(actor, dry_run)]


def _shown(found: Reaped) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "name": verdict.name,
        "class": verdict.kind.value,
        "action": verdict.action.value,
        "evidence": list(verdict.evidence),
        "launch": verdict.launch_id or None,
        "outcome": None if found.outcome is None else found.outcome.value,
        "why": found.why or verdict.evidence[0],
    }


class AdoptRequest(BaseModel):
    """A tmux session to take over."""

    model_config = ConfigDict(extra="forbid")

    target: str
    sockets: list[str]
    name: str | None = None


@router.get("/v1/adopt")
async def candidates(daemon: TheDaemon, socket: Annotated[list[str] | None, Query()] = None) -> list[dict[str, Any]]:
    """Sessions on other servers, with the agent found in each."""
    found = await daemon.adopting.candidates(socket or [])
    names = {one.tag: mine.name for one in found if one.tag and (mine := daemon.machine.of_launch(one.tag)) is not None}
    return [candidate_view(one, names.get(one.tag)) for one in found]


@router.post("/v1/adopt", status_code=201)
async def adopt(daemon: TheDaemon, wanted: AdoptRequest, actor: Actor) -> dict[str, Any]:
    """Take over a tmux session that was started elsewhere, without restarting it."""
    session = await daemon.adopting.adopt(wanted.target, wanted.sockets, wanted.name, actor)
    return session_detail(session, daemon.secrets.redactor(session.id))


@router.post("/v1/sessions/{name:whole}:release")
async def release(daemon: TheDaemon, name: str, actor: Actor, reason: str = "") -> dict[str, Any]:
    """Give a session back that was adopted; all of it goes on."""
    session = await daemon.adopting.release(name, actor, reason)
    assert session.launch is not None and session.launch.host is not None
    host, pid = session.launch.host, session.launch.agent.pid if session.launch.agent is not None else None
    return {"name": name, "target": host.name, "socket": host.socket, "pid": pid}


def candidate_view(candidate: Candidate, adopted_as: str | None) -> dict[str, Any]:
    """Return a candidate for people and programs."""
    agent = candidate.agent
    return {
        "name": candidate.name,
        "socket": candidate.socket,
        "server_pid": candidate.server.pid,
        "attached": candidate.attached,
        "panes": candidate.panes,
        "agent": agent.kind if candidate.known else None,
        "pid": agent.process.pid,
        "command": redact_command(agent.command),
        "cwd": agent.cwd,
        "adopted_as": adopted_as,
    }
