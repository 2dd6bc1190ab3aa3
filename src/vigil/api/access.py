"""Who may do what: an agent that Vigil watches may read all, but change only its own session."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from vigil.api import paths  # noqa: F401  the routes' `whole`
from vigil.api.peers import find_agent
from vigil.daemon.daemon import Daemon
from vigil.errors import Refused


async def the_daemon(request: Request) -> Daemon:
    """Return the daemon this API speaks for."""
    daemon = request.app.state.daemon
    assert isinstance(daemon, Daemon)
    return daemon


TheDaemon = Annotated[Daemon, Depends(the_daemon)]


def may_change(daemon: Daemon, request: Request, name: str | None) -> str:
    """Return who asks, or refuse: an agent below the keeper changes only its own session, and creates none."""
    pid = request.client.port if request.client else 0
    below, session = find_agent(pid, daemon.keeper.pid, daemon.machine)
    if not below:
        return "operator"
    actor = f"agent {session.name}" if session else "an agent"
    if session is None or session.name != name:
        who = f"{actor} is" if session else "this comes from"
        what = f"change {name}" if name else "create or end sessions"
        raise Refused(f"{who} an agent that Vigil watches: it may read, but not {what}; a person can")
    return actor
