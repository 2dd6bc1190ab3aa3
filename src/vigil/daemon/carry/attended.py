"""Attended: whether somebody uses a launch that we would lay hands on."""

from __future__ import annotations

from vigil.core.model.launch import Launch
from vigil.home import Home
from vigil.observe.clients import read_clients
from vigil.observe.descendants import find_named
from vigil.runtimes import socket_of


def why_attended(launch: Launch, home: Home) -> str:
    """Say who uses a launch's pane, or what a dead agent left open; nothing if nobody does."""
    if launch.host is None and launch.server is not None:
        clients = read_clients()
        if clients is None:
            return "nobody can tell who is attached to its pane"
        if clients.get(socket_of(home, launch), 0):
            return "a person is attached to its pane"
    if (
        launch.ended_at is not None
        and launch.process is not None
        and launch.names
        and find_named(launch.process, launch.names) is not None
    ):
        return f"{' or '.join(launch.names)} runs in the pane of its last one"
    return ""
