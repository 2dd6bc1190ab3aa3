"""Who may do what: a table of every route; one that is not in it is refused (decisions.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request

from vigil.api import paths  # noqa: F401  the routes' `whole`
from vigil.api.peers import find_agent
from vigil.daemon.daemon import Daemon
from vigil.errors import Refused
from vigil.kernel.trust import PeerProcess


class Callers(StrEnum):
    """Who may call a route; all are processes of our user."""

    ANY = "any"  # it reads: an agent may too
    OWNER = "owner"  # a person, or the agent of the session that the route names
    PERSON = "person"


ANY, OWNER, PERSON = Callers.ANY, Callers.OWNER, Callers.PERSON
SESSION = "/v1/sessions/{name:whole}"
ACCESS: dict[tuple[str, str], Callers] = {
    ("GET", "/v1/daemon"): ANY,
    ("POST", "/v1/daemon:stop"): PERSON,
    ("GET", "/v1/sessions"): ANY,
    ("POST", "/v1/sessions"): PERSON,
    ("GET", SESSION): ANY,
    ("GET", f"{SESSION}:why"): ANY,
    ("GET", f"{SESSION}:diag"): ANY,
    ("GET", f"{SESSION}:logs"): ANY,
    ("GET", f"{SESSION}:attach"): OWNER,
    ("POST", f"{SESSION}:heartbeat"): OWNER,
    ("POST", f"{SESSION}:send"): OWNER,
    ("POST", f"{SESSION}:wake"): OWNER,
    ("POST", f"{SESSION}:release"): OWNER,
    ("POST", f"{SESSION}:{{verb}}"): OWNER,
    ("DELETE", SESSION): OWNER,
    ("GET", "/v1/events"): ANY,
    ("GET", "/v1/events/stream"): ANY,
    ("GET", "/v1/deaths"): ANY,
    ("GET", "/v1/deaths/{which:whole}"): ANY,
    ("GET", "/v1/incidents"): ANY,
    ("GET", "/v1/incidents/{incident_id:whole}"): ANY,
    ("POST", "/v1/incidents/{incident_id:whole}:ack"): PERSON,
    ("POST", "/v1/routes/{name}:test"): PERSON,
    ("POST", "/v1/reap"): PERSON,  # a dry run too: it asks tmux servers
    ("GET", "/v1/adopt"): PERSON,  # it starts a tmux client on a socket of the caller's choice
    ("POST", "/v1/adopt"): PERSON,
    ("POST", "/v1/manifest:plan"): PERSON,  # it reads folders of the caller's choice
    ("POST", "/v1/manifest:apply"): PERSON,
    ("GET", "/v1/roles"): ANY,
    ("POST", "/v1/roles/{name:whole}:scale"): PERSON,
    ("POST", "/v1/teams:down"): PERSON,
    ("POST", "/v1/teams/{team:whole}:shift"): PERSON,
    ("POST", "/v1/teams/{team:whole}:abort"): PERSON,
}


async def the_daemon(request: Request) -> Daemon:
    """Return the daemon this API speaks for."""
    daemon = request.app.state.daemon
    assert isinstance(daemon, Daemon)
    return daemon


TheDaemon = Annotated[Daemon, Depends(the_daemon)]


async def admit(request: Request) -> str:
    """Return who asks, or refuse; every route depends on it."""
    callers = ACCESS.get((request.method, request.scope["route"].path))
    peer = getattr(request.state, "peer", None)
    if callers is None or not isinstance(peer, PeerProcess) or not peer.is_here():
        raise Refused("who asks cannot be told: its process is gone, or cannot be seen from here")
    if callers is ANY:
        return ""
    name = request.path_params.get("name") if callers is OWNER else None
    daemon = await the_daemon(request)
    below, session = find_agent(peer.pid, daemon.keeper.identity, daemon.machine, daemon.boot)
    if not peer.is_here():  # its ancestry was perhaps another's
        raise Refused("who asks cannot be told: its process ended meanwhile")
    if below is None:
        raise Refused("who asks cannot be told: its ancestry cannot be read")
    if not below:
        return "operator"
    actor = f"agent {session.name}" if session else "an agent"
    if session is None or session.name != name:
        who = f"{actor} is" if session else "this comes from"
        what = f"change {name}" if name else "create or end sessions"
        raise Refused(f"{who} an agent that Vigil watches: it may read, but not {what}; a person can")
    return actor


Actor = Annotated[str, Depends(admit)]
