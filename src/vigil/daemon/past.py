"""The past: what the store knows when a daemon starts."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.incident import Incident
from vigil.core.incidents import REMEMBERED_S
from vigil.core.model import Session
from vigil.core.roles import Role
from vigil.store.store import Store


@dataclass(frozen=True, slots=True)
class Past:
    """What a machine begins with."""

    sessions: list[Session]
    incidents: list[Incident]  # those that are open, and those that may yet come back or be told
    roles: list[Role]


def read_past(store: Store, now: float) -> Past:
    """Read what the daemon before us left."""
    over = store.read_untold(now - REMEMBERED_S)
    return Past(store.read_sessions(), [*store.read_incidents(), *over], store.read_roles())
